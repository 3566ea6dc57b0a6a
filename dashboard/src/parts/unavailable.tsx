// A server that is older than this page lacks a route: said once, quietly.
export function Unavailable({ what, route }: { what: string; route: string }) {
  return (
    <p class="muted unavailable">
      This server does not offer {what} (<code>{route}</code>).
    </p>
  );
}
