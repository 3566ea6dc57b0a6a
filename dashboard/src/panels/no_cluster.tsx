import { Command } from "../parts/command";
import { Mark } from "../parts/hull";

// The first thing that a new operator sees.
export function NoCluster({ add }: { add: () => void }) {
  return (
    <section class="empty harbour">
      <Mark />
      <h2>The harbour is empty</h2>
      <p>
        A cluster is a set of nodes; each holds a full copy of the model, and together they answer
        as one endpoint. Begin with this machine:
      </p>
      <button type="button" class="button primary" onClick={add}>
        Add Argo cluster
      </button>
      <Command
        words={
          "flotilla cluster add local --node 'local*2'\nflotilla load local MODEL.gguf --batch"
        }
      />
    </section>
  );
}
