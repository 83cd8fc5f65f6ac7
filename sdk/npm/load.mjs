// Loads the SDK from the service, once; on a server there is nothing to load it into.

const loading = new Map();

export function loadSvc(serviceUrl) {
  if (typeof window === "undefined") return Promise.resolve(null);
  if (typeof window.Svc === "function") return Promise.resolve(window.Svc);
  const src = `${String(serviceUrl).replace(/\/+$/, "")}/sdks/v1/svc.min.js`;
  const under = loading.get(src);
  if (under) return under;
  const loaded = new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = src;
    script.async = true;
    script.addEventListener("load", () => {
      if (typeof window.Svc === "function") resolve(window.Svc);
      else reject(new Error(`Svc: ${src} did not define Svc`));
    });
    script.addEventListener("error", () => {
      // A later call may try again.
      loading.delete(src);
      script.remove();
      reject(new Error(`Svc: ${src} could not be loaded`));
    });
    document.head.append(script);
  });
  loading.set(src, loaded);
  return loaded;
}
