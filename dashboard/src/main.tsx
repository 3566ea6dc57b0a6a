import { render } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { endRequestsWithPage, whenRefused } from "./access";
import { decodeFleet, type Fleet } from "./api";
import { type Playground, useChat } from "./chat/use_chat";
import { type Followed, follow } from "./follow";
import { Notify } from "./notify";
import { ApiPage } from "./pages/api";
import { BenchPage } from "./pages/bench";
import { ChatPage } from "./pages/chat";
import { ClustersPage } from "./pages/clusters";
import { KeysPage } from "./pages/keys";
import { LivePage } from "./pages/live";
import { LoginPage } from "./pages/login";
import { LogsPage } from "./pages/logs";
import { ModelsPage } from "./pages/models";
import { NodesPage } from "./pages/nodes";
import { SettingsPage } from "./pages/settings";
import { Connection } from "./panels/connection";
import { Endpoint } from "./panels/endpoint";
import { Header } from "./panels/header";
import { Notices } from "./panels/notices";
import { ArrivedAt } from "./parts/clock";
import { type PageId, useRoute } from "./route";
import { type Bench, useBench } from "./use_bench";
import { initial, lastOf, reduce, type State } from "./state";
import { decodeTold } from "./told";
import "./styles/index.css";

interface PageProps {
  page: PageId;
  fleet: Fleet;
  state: State;
  playground: Playground;
  bench: Bench;
  adds: boolean;
  setAdds: (adds: boolean) => void;
}

function Page({ page, fleet, state, playground, bench, adds, setAdds }: PageProps) {
  const { connections: generation, told } = state;
  switch (page) {
    case "clusters":
      return (
        <>
          <ClustersPage fleet={fleet} tracks={state.tracks} adds={adds} setAdds={setAdds} />
          <Endpoint fleet={fleet} />
        </>
      );
    case "chat":
      return <ChatPage fleet={fleet} playground={playground} />;
    case "live":
      return <LivePage fleet={fleet} requests={told.requests} generation={generation} />;
    case "bench":
      return <BenchPage fleet={fleet} bench={bench} />;
    case "nodes":
      return <NodesPage fleet={fleet} telemetry={told.nodes} />;
    case "models":
      return <ModelsPage fleet={fleet} generation={generation} />;
    case "keys":
      return <KeysPage fleet={fleet} generation={generation} />;
    case "settings":
      return <SettingsPage generation={generation} />;
    case "logs":
      return <LogsPage fleet={fleet} audit={told.audit} generation={generation} />;
    case "api":
      return <ApiPage fleet={fleet} />;
  }
}

function App() {
  const [state, act] = useReducer(reduce, initial);
  const [adds, setAdds] = useState(false);
  const followed = useRef<Followed | null>(null);
  const page = useRoute();
  const playground = useChat();
  const bench = useBench();
  useEffect(() => {
    whenRefused(() => act({ tag: "access", access: "closed" }));
    const following = follow(
      "/admin/stream",
      decodeFleet,
      (signal) => act({ tag: "fleet", signal }),
      (name, data) => act({ tag: "told", told: decodeTold(name, data) }),
    );
    followed.current = following;
    return () => following.close();
  }, []);

  const open = state.access === "open";
  const last = lastOf(state.fleet);
  const notify = (title: string, detail: string) =>
    act({ tag: "notice", title, detail, at: Date.now() });
  function loggedIn() {
    act({ tag: "access", access: "open" });
    followed.current?.retryNow();
  }
  function addCluster() {
    location.hash = "#/clusters";
    setAdds(true);
  }
  return (
    <ArrivedAt.Provider value={last?.at ?? 0}>
      <Notify.Provider value={notify}>
        <Header stream={state.fleet} access={state.access} page={page} addCluster={addCluster} />
        {open && <Connection stream={state.fleet} retry={() => followed.current?.retryNow()} />}
        <main id="main" tabIndex={-1} data-stream={state.fleet.tag} data-page={page}>
          <Notices notices={state.notices} dismiss={(id) => act({ tag: "dismiss", id })} />
          {!open && <LoginPage done={loggedIn} />}
          {open && last && (
            <Page
              page={page}
              fleet={last.value}
              state={state}
              playground={playground}
              bench={bench}
              adds={adds}
              setAdds={setAdds}
            />
          )}
        </main>
        <footer>
          <a href="/licences.txt">Licences of what this page is made of</a>
        </footer>
      </Notify.Provider>
    </ArrivedAt.Provider>
  );
}

endRequestsWithPage();
const root = document.getElementById("app");
if (root) render(<App />, root);
