// Who may use this page. Where the server has an admin token it answers 401 until somebody has logged
// in; then the browser sends a cookie that no script sees.

let refused = () => {};

// `listener` hears of every 401, whoever asked.
export function whenRefused(listener: () => void) {
  refused = listener;
}

// fetch, for all that this page asks of its server.
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const answer = await fetch(path, init);
  if (answer.status === 401) refused();
  return answer;
}
