// Keys, the theme, whether the page is looked at, and that it is left.
(() => {
  const body = () => document.body;
  const typing = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;
  let afterG = false;

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (afterG) {
      afterG = false;
      const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        link.click();
      }
      return;
    }
    if (event.key === "g") {
      afterG = true;
      setTimeout(() => (afterG = false), 1500);
    } else if (event.key === "/") {
      const field = document.querySelector("[data-filter]");
      const input = field && (field.matches("input") ? field : field.querySelector("input"));
      if (input) {
        event.preventDefault();
        input.focus();
      }
    }
  });

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme]")) return;
    const dark = !body().classList.contains("body--dark");
    document.cookie = `ottla-theme=${dark ? "dark" : "light"}; path=/; max-age=31536000; samesite=strict`;
    Quasar.Dark.set(dark);
    emitEvent("theme", dark);
    document.dispatchEvent(new CustomEvent("ottla-theme"));
  });

  document.addEventListener("visibilitychange", () => emitEvent("visibility", document.visibilityState));
  addEventListener("pagehide", () => emitEvent("left"));
})();
