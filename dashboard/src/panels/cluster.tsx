import { type Cluster, type Node } from "../api";
import { Command } from "../parts/command";
import { Tip, type Tone } from "../parts/tip";
import { poolsShown, poolTrack, replicaTrack, type Tracks, ttftOf } from "../state";
import { Loader } from "./loader";
import { PoolRow } from "./pool_row";

interface Props {
  cluster: Cluster;
  tracks: Tracks;
  isOpen: (track: string) => boolean;
  toggle: (track: string) => void;
  load: () => void;
  reload: (alias: string) => void;
  unload: (alias: string) => void;
  manage: (alias: string, node: string) => void;
  edit: () => void;
}

export function nodeTone(node: Node): Tone {
  switch (node.state) {
    case "up":
      return "live";
    case "connecting":
      return "wait";
    default:
      return "out";
  }
}

function NodePill({ node }: { node: Node }) {
  const tone = nodeTone(node);
  const label = (
    <>
      <span class="lamp" data-tone={tone} aria-hidden="true" /> {node.id}
    </>
  );
  return (
    <Tip tone={tone === "live" ? "plain" : tone} label={label}>
      {node.label && node.label !== node.id ? `${node.label}: ` : ""}
      {node.transport} node, {node.state}
      {node.reason && `. ${node.reason}`}
    </Tip>
  );
}

function NothingLoaded({ cluster, load }: { cluster: Cluster; load: () => void }) {
  const { id, label, nodes } = cluster;
  const own = nodes.length === 1 ? "its node" : `each of its ${nodes.length} nodes`;
  // Engines that run already hold their model: it is only given a name here.
  const served = nodes.length > 0 && nodes.every((node) => node.transport === "http");
  return (
    <div class="empty">
      <p>
        Nothing is loaded on {label || id}.{" "}
        {served
          ? "A load gives what its engines serve a model name here; it copies nothing to them."
          : `A load puts one copy of the model on ${own}.`}{" "}
        Until then nothing answers.
      </p>
      <button type="button" class="button primary" onClick={load}>
        Load a model
      </button>
      <Command words={`flotilla load ${id} ${served ? "NAME" : "MODEL.gguf --batch"}`} />
    </div>
  );
}

export function ClusterPanel(props: Props) {
  const { cluster, tracks, isOpen, toggle, load, reload, unload, manage, edit } = props;
  const { id, label, kind, nodes, pools, loading } = cluster;
  return (
    <section class="cluster" data-cluster={id} aria-labelledby={`cluster-${id}`}>
      <header class="cluster-head">
        <h2 id={`cluster-${id}`}>{label || id}</h2>
        <span class="muted">
          {label && label !== id && (
            <>
              <code>{id}</code> ·{" "}
            </>
          )}
          {kind}
        </span>
        <span class="nodes">
          {nodes.map((node) => (
            <NodePill key={node.id} node={node} />
          ))}
        </span>
        <span class="spring" />
        <button
          type="button"
          class="button small quiet"
          aria-label={`Edit ${label || id}`}
          onClick={edit}
        >
          Edit
        </button>
        <button type="button" class="button small" onClick={load}>
          Load a model
        </button>
      </header>
      {loading.map((entry) => (
        <Loader key={entry.alias} loading={entry} />
      ))}
      {poolsShown(cluster).map((pool) => {
        const track = poolTrack(id, pool.alias);
        return (
          <PoolRow
            key={pool.alias}
            pool={pool}
            track={tracks.by.get(track) ?? []}
            trackOf={(node) => tracks.by.get(replicaTrack(track, node)) ?? []}
            ttftOf={(node) => ttftOf(tracks, pool.alias, node)}
            open={isOpen(track)}
            toggle={() => toggle(track)}
            reload={() => reload(pool.alias)}
            unload={() => unload(pool.alias)}
            manage={(node) => manage(pool.alias, node)}
          />
        );
      })}
      {pools.length + loading.length === 0 && <NothingLoaded cluster={cluster} load={load} />}
    </section>
  );
}
