// The values of a link: how sliders scale them, and how they are written, as in scenarios.
// The lab reads what is typed (core/units.py); nothing here does.

const digits = (value) => String(Number(value.toPrecision(3)));

function withUnit(value, units) {
  for (const [unit, scale] of units) if (value >= scale) return `${digits(value / scale)} ${unit}`;
  const [unit, scale] = units[units.length - 1];
  return `${digits(value / scale)} ${unit}`;
}

export const rate = (bps) =>
  withUnit(bps, [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3], ["bit/s", 1]]);
export const duration = (s) => (s === 0 ? "0 s" : withUnit(s, [["s", 1], ["ms", 1e-3], ["us", 1e-6]]));
export const share = (ratio) => `${digits(ratio * 100)} %`;
export const size = (bytes) => withUnit(bytes, [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]]);
export const clock = (s) => `${s.toFixed(1)} s`;

// A slider has 0 to STEPS. `zero` says that its first step is 0, below `low`.
export const STEPS = 200;

const round2 = (value) => Number(value.toPrecision(2));

function logarithmic(low, high, zero = false) {
  const first = zero ? 1 : 0;
  return {
    value(step) {
      if (zero && step <= 0) return 0;
      return round2(low * (high / low) ** ((step - first) / (STEPS - first)));
    },
    step(value) {
      if (value < low) return 0;
      const part = Math.log(value / low) / Math.log(high / low);
      return Math.round(first + Math.min(1, part) * (STEPS - first));
    },
  };
}

const whole = (write) => (value) => write(Math.round(value));

// By the keys of events.
export const CONTROLS = {
  down: { label: "Rate", scale: logarithmic(1e5, 5e8), write: whole(rate) },
  up: { label: "Uplink", scale: logarithmic(1e5, 5e8), write: whole(rate) },
  rtt: { label: "Round trip", scale: logarithmic(1e-3, 2, true), write: duration },
  jitter: { label: "Jitter", scale: logarithmic(1e-4, 0.5, true), write: duration },
  loss: { label: "Loss", scale: logarithmic(1e-4, 0.5, true), write: share },
  queue: { label: "Queue", scale: logarithmic(3e3, 3e7), write: whole(size) },
};
