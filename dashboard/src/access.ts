// Who may use this page. Where the server has an admin token it answers 401 until somebody has logged
// in; then the browser sends a cookie that no script sees.

let refused = () => {};

// `listener` hears of every 401, whoever asked.
export function whenRefused(listener: () => void) {
  refused = listener;
}

let left = new AbortController();

// A page that was left may be kept, to come back at once, and what it asked would go on meanwhile: six
// such pages have all the connections that a browser opens to a host. Who comes back is asked anew.
export function endRequestsWithPage() {
  window.addEventListener("pagehide", () => {
    left.abort();
    left = new AbortController();
  });
}

// fetch, for all that this page asks of its server.
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const signals = init.signal ? [init.signal, left.signal] : [left.signal];
  const answer = await fetch(path, { ...init, signal: AbortSignal.any(signals) });
  if (answer.status === 401) refused();
  return answer;
}
