// Light or dark: the system's choice until the operator makes one (theme.js applies it at start).
const key = "flotilla.theme";
export type Theme = "light" | "dark";

const system = (): Theme => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

export function currentTheme(): Theme {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "light" || chosen === "dark" ? chosen : system();
}

export function setTheme(theme: Theme) {
  const follow = theme === system();
  if (follow) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (follow) localStorage.removeItem(key);
    else localStorage.setItem(key, theme);
  } catch {
    // No storage (a private window): the choice lasts as long as the page.
  }
}
