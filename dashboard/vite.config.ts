import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

// `npm run dev` shows the page with hot reload against a server that runs elsewhere.
const server = process.env.FLOTILLA_URL ?? "http://127.0.0.1:8000";

// What others wrote and the page contains goes out with their licences.
function licences(names: string[]): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      const texts = names.map(
        (name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8")}`,
      );
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join("\n\n") });
    },
  };
}

// The server takes orders from its own pages only.
const behind = { target: server, changeOrigin: true, headers: { origin: server } };

export default defineConfig({
  server: { proxy: { "/admin": behind, "/v1": behind, "/health": behind } },
  build: {
    target: "es2022",
    // The page's policy allows no data: URLs and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  plugins: [licences(["preact", "@fontsource/b612", "marked", "dompurify", "uplot"])],
});
