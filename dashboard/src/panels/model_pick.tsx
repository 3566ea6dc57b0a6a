import { type Asked } from "../ask";
import { allNodes, bytes } from "../format";
import { type FoundModel, type Inventory } from "../inventory";
import { Trouble } from "../parts/trouble";

interface Props {
  found: Asked<Inventory>;
  chosen: string;
  choose: (model: string) => void;
}

function where(model: FoundModel, nodes: number): { words: string; trouble: boolean } {
  if (model.error) return { words: model.error, trouble: true };
  if (model.missing.length > 0) {
    return { words: `missing on ${model.missing.join(", ")}`, trouble: true };
  }
  if (model.differing.length > 0) {
    return { words: `another file on ${model.differing.join(", ")}`, trouble: true };
  }
  return { words: nodes > 1 ? `on ${allNodes(nodes)}` : "there", trouble: false };
}

function Entry({
  model,
  nodes,
  chosen,
  choose,
}: Omit<Props, "found"> & { model: FoundModel; nodes: number }) {
  const { words, trouble } = where(model, nodes);
  const kind = model.folder ? "folder" : "";
  const facts = [model.family, model.quantization, kind, bytes(model.size_bytes)].filter(Boolean);
  return (
    <label class="model-choice" data-chosen={chosen === model.model}>
      <input
        type="radio"
        name="model"
        checked={chosen === model.model}
        onChange={() => choose(model.model)}
      />
      <span>
        <strong>{model.model}</strong>
        <span class="hint">
          {facts.join(" · ")} · <span class={trouble ? "trouble" : ""}>{words}</span>
        </span>
      </span>
    </label>
  );
}

// The model files in the nodes' folders. Where none can be shown, the path below is the way.
export function ModelPick({ found, chosen, choose }: Props) {
  switch (found.tag) {
    case "waiting":
      return <p class="hint">Looking for models on the nodes…</p>;
    case "missing":
      return null;
    case "failed":
      return (
        <Trouble words={`The nodes' models cannot be shown: ${found.message}`} again={found.again} />
      );
    case "known": {
      const { models, nodes } = found.value;
      const why = [...new Set(nodes.map((node) => node.error).filter(Boolean))];
      if (models.length === 0) {
        return (
          <p class="hint">
            No model was found on the nodes{why.length > 0 && `: ${why.join("; ")}`}.
          </p>
        );
      }
      return (
        <fieldset class="field model-list">
          <legend>Found on the nodes</legend>
          <div class="model-choices">
            {models.map((model) => (
              <Entry
                key={model.model}
                model={model}
                nodes={nodes.length}
                chosen={chosen}
                choose={choose}
              />
            ))}
          </div>
        </fieldset>
      );
    }
  }
}
