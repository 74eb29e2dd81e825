//! The five scales of the map, each in five fixed steps.
import type { RiskRecord, StressRecord } from '../api';

export const BYS = ['level', 'stress', 'flood', 'drought', 'overall'] as const;
export type By = (typeof BYS)[number];
export const LEVELS = ['normal', 'vigilance', 'alerte', 'alerte_renforcee', 'crise'] as const;
export type Level = (typeof LEVELS)[number];

/** The overseas départements: tiles, for they have no place on the map. */
export const OVERSEAS = ['971', '972', '973', '974', '976'];

/** What is known of one département; a record may be missing. */
export type Row = { code: string; name: string; stress?: StressRecord; risk?: RiskRecord; derived: boolean };

/** Whether this is one of the five scales. */
export function isBy(text: string | undefined): text is By {
  return BYS.some((by) => by === text);
}

/** The figure that a scale shows, `undefined` without a record; of levels their rank. */
export function figure(row: Row, by: By): number | undefined {
  if (by === 'level') {
    const rank = LEVELS.findIndex((level) => level === row.stress?.level);
    return rank < 0 ? undefined : rank;
  }
  return by === 'stress' ? row.stress?.stressIndex : row.risk?.[by];
}

/** How wide a step is: levels are steps, an index goes from 0 to 5, a score from 0 to 100. */
export function width(by: By): number {
  return by === 'level' || by === 'stress' ? 1 : 20;
}

/** The step of a figure, 0 to 4: `[0, width)` is the first, the last holds the greatest value. */
export function step(row: Row, by: By): number | undefined {
  const value = figure(row, by);
  return value === undefined ? undefined : Math.min(4, Math.floor(value / width(by)));
}

/** The class that colours a step: the register's five colours for levels, one hue for the others. */
export function colour(of: number | undefined, by: By): string {
  if (of === undefined) return 'none';
  return (by === 'level' ? 'l' : 's') + of;
}

/** All 101 rows, by code. */
export function rows(names: Record<string, string>, stress: StressRecord[], risks: RiskRecord[]): Row[] {
  const stressOf = new Map(stress.map((record) => [record.dept, record]));
  const riskOf = new Map(risks.map((record) => [record.dept, record]));
  return Object.entries(names)
    .map(([code, name]) => {
      const stress = stressOf.get(code);
      return { code, name, stress, risk: riskOf.get(code), derived: stress?.levelSource === 'derived' };
    })
    .sort((a, b) => (a.code < b.code ? -1 : 1));
}
