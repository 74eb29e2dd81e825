//! The few drawings that the pages use; all are decoration and hidden from screen readers.
import type { JSX } from 'preact';

function icon(path: string): JSX.Element {
  return (
    <svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

export const Drop = () => icon('M12 2.600c4.200 5 6.700 8.300 6.700 11.800a6.700 6.700 0 0 1-13.400 0C5.300 10.900 7.800 7.600 12 2.600zM8.600 14.700a3.500 3.500 0 0 0 3.400 3.200');
export const KeyIcon = () => icon('M15 9a3 3 0 1 0 0 .1M10.500 13.500 3 21m3-3 2.500 2.500M9 15l2 2M10 14a6 6 0 1 1 1.500 1');
export const MapIcon = () => icon('M9 4 3 6.500v14L9 18l6 2.500 6-2.500V4l-6 2.500zM9 4v14m6-11.500v14');
export const CodeIcon = () => icon('m8 7-5 5 5 5m8-10 5 5-5 5m-3-13-3 16');
