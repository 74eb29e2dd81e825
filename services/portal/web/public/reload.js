//! Loads the page again, which has asked for a script of another version: the portal answers this in
//! place of one that it does not have. While a rollout answers from two versions that may happen again,
//! so it waits longer each time, and gives up after twelve times in two minutes.
const REMEMBERED = 120_000;
const MOST = 12;

function reload() {
  const now = Date.now();
  const times = (sessionStorage.getItem('reloads') ?? '').split(' ').map(Number);
  const recent = times.filter((time) => time > now - REMEMBERED && time <= now);
  if (recent.length >= MOST) return false;
  sessionStorage.setItem('reloads', [...recent, now].join(' '));
  setTimeout(() => location.reload(), Math.min(5000, 250 * 2 ** recent.length));
  return true;
}

function giveUp() {
  const text = 'Cette page n’a pas pu être chargée : rechargez-la dans un instant. This page could not be loaded: load it again in a moment.';
  document.body.replaceChildren(Object.assign(document.createElement('p'), { textContent: text, role: 'alert' }));
}

try {
  if (!reload()) giveUp();
} catch {
  // Without a storage it could load for ever.
  giveUp();
}
