export interface Front {
  readonly name: string
  readonly version: string
}

/** Links are relative, so that they work behind a prefix as well. Pure. */
export function frontPage ({ name, version }: Front): string {
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${name} ${version}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:10vh auto;padding:0 1rem;color-scheme:light dark}dt{font-weight:600}dd{margin:0 0 .8rem}</style>
<h1>${name} ${version}</h1>
<p>A local inference gateway. It is running.</p>
<dl>
<dt><a href="api/docs">API documentation</a></dt><dd>every route, with examples (<a href="api/openapi.json">OpenAPI</a>)</dd>
<dt><a href="v1/models">Models</a></dt><dd>available to clients; their base URL is this address with <code>/v1</code></dd>
<dt><a href="api/status">Status</a></dt><dd>slots, upstreams and what is wrong, as JSON</dd>
</dl>
</html>
`
}
