import { bytes } from "../format";
import { type FoundModel, type Inventory, wanting } from "../inventory";

interface Props {
  found: Inventory;
  sync: (model: FoundModel) => void;
  check: (model: FoundModel) => void;
}

function Presence({ model, nodes }: { model: FoundModel; nodes: Inventory["nodes"] }) {
  return (
    <span class="nodes">
      {nodes.map(({ node, error }) => {
        const there = model.nodes.includes(node);
        const other = model.differing.includes(node);
        const word = error ? "not asked" : other ? "another file" : there ? "has it" : "lacks it";
        const tone = there && !other ? "plain" : error ? "wait" : "out";
        return (
          <span key={node} class="pill" data-tone={tone} data-presence={word}>
            {node} {tone !== "plain" && <small>{word}</small>}
          </span>
        );
      })}
    </span>
  );
}

function Row({ model, found, sync, check }: Props & { model: FoundModel }) {
  const facts = [model.family, model.quantization].filter(Boolean).join(" · ");
  return (
    <tr data-model={model.model}>
      <th scope="row" class="wraps">
        {model.model}
        {model.error && <p class="trouble">{model.error}</p>}
        {model.folder && <p class="muted">folder of weights, for an engine that is not ours</p>}
        {!model.folder && model.parts > 1 && <p class="muted">{model.parts} parts</p>}
      </th>
      <td>{facts}</td>
      <td class="num">{bytes(model.size_bytes)}</td>
      <td class="matters">
        <Presence model={model} nodes={found.nodes} />
      </td>
      <td class="row-actions acts">
        <button
          type="button"
          class="button small quiet"
          aria-label={`Compare ${model.model}`}
          onClick={() => check(model)}
        >
          Compare
        </button>
        {!model.folder && wanting(model).length > 0 && (
          <button
            type="button"
            class="button small"
            aria-label={`Copy ${model.model}`}
            onClick={() => sync(model)}
          >
            Copy
          </button>
        )}
      </td>
    </tr>
  );
}

// One cluster's model files, and which of its nodes has each.
export function ModelTable({ found, sync, check }: Props) {
  const why = found.nodes.filter((node) => node.error);
  return (
    <section class="panel" data-inventory={found.cluster} aria-label={`Models of ${found.cluster}`}>
      <h2>{found.cluster}</h2>
      {found.models.length === 0 && <p class="muted">No model file was found.</p>}
      {found.models.length > 0 && (
        <div class="table-box" tabIndex={0} role="group" aria-label={`Files of ${found.cluster}`}>
          <table class="table stacks">
            <thead>
              <tr>
                <th scope="col">Model</th>
                <th scope="col">Kind</th>
                <th scope="col">Size</th>
                <th scope="col">Nodes</th>
                <th scope="col">
                  <span class="spoken">Orders</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {found.models.map((model) => (
                <Row key={model.model} model={model} found={found} sync={sync} check={check} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {why.map(({ node, error }) => (
        <p key={node} class="hint">
          {node}: {error}
        </p>
      ))}
    </section>
  );
}
