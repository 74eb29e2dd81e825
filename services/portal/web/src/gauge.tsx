//! A bar that shows a share; the figure stands beside it in words.

/** `share` is 0 to 1. */
export function Gauge({ share }: { share: number }) {
  const width = 100 * Math.min(1, Math.max(0, share));
  return (
    <svg class="gauge" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect width="100" height="8" />
      <rect width={width} height="8" />
    </svg>
  );
}
