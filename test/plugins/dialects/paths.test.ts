import t from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'

/** Every route of Ollama's API, as its server mounts them, but for its copies of `/v1`. */
const ollamaPaths = [
  'POST /api/pull', 'POST /api/push', 'GET /api/tags', 'POST /api/show', 'DELETE /api/delete', 'POST /api/create', 'POST /api/blobs/sha256:aa',
  'POST /api/copy', 'GET /api/ps', 'POST /api/generate', 'POST /api/chat', 'POST /api/embed', 'POST /api/embeddings', 'GET /api/version'
]

/** Those of Gemini's API that are here. */
const geminiPaths = ['POST /v1beta/models/agent:generateContent', 'GET /v1beta/models', 'GET /v1beta/models/agent']

t.test('no path of another dialect is one of ours', async t => {
  const gateway = await createTestGateway({ builtins, plugins: [createFakeProviderPlugin()], runtime: new FakeEngineRuntime() })
  t.teardown(() => gateway.close())
  const { plugins } = await (await gateway.fetch('/api/plugins')).json() as { plugins: Array<{ name: string, state: string, routes: string[] }> }
  const routes = plugins.flatMap(({ name, routes }) => routes.map(route => {
    const [method = '', url = ''] = route.split(' ')
    const pattern = url.split('/').map(part => part === '*' ? '.*' : part.replace(/:[A-Za-z_]\w*/, '[^/]+').replaceAll('.', '\\.')).join('/')
    return { name, method, matches: new RegExp(`^${pattern}$`) }
  }))
  t.ok(routes.length > 200, `${routes.length} routes`)
  const owned = [...ollamaPaths.map(path => ['ollama', path] as const), ...geminiPaths.map(path => ['gemini', path] as const)]
  for (const [owner, path] of owned) {
    const [method = '', url = ''] = path.split(' ')
    const there = routes.filter(({ matches }) => matches.test(url))
    t.strictSame([...new Set(there.map(({ name }) => name))], [owner], path)
    t.ok(there.some(route => route.method === method), path)
  }
})
