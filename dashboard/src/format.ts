// Numbers as an operator reads them: few digits, a unit, no jumping width.

export function rate(value: number): string {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)}k`;
  if (value >= 100 || value === 0) return value.toFixed(0);
  return value.toFixed(1);
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let scaled = value;
  let unit = 0;
  while (scaled >= 999.5 && unit < units.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  return `${unit === 0 || scaled >= 100 ? scaled.toFixed(0) : scaled.toFixed(1)} ${units[unit]}`;
}

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`;
}

// On how many of its nodes a thing is, where it is on all: "its node", "both nodes".
export function allNodes(nodes: number): string {
  if (nodes === 1) return "its node";
  return nodes === 2 ? "both nodes" : `all ${nodes} nodes`;
}

// A sentence begins with a capital, whoever wrote it.
export const sentence = (words: string) => words.slice(0, 1).toUpperCase() + words.slice(1);

const two = (value: number) => String(value).padStart(2, "0");

// Times of day have 24 hours, in charts and tables alike.
export function minuteOf(unix_ms: number): string {
  const at = new Date(unix_ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}`;
}

export function secondOf(unix_ms: number): string {
  return `${minuteOf(unix_ms)}:${two(new Date(unix_ms).getSeconds())}`;
}

export function momentOf(unix_ms: number): string {
  const at = new Date(unix_ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${secondOf(unix_ms)}`;
}

// The last part of a path: models are told apart by their file's name.
export function basename(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}
