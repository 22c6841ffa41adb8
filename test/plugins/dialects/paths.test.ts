import t from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'

/** Every route of Ollama's API, as its server mounts them, but for its copies of `/v1`. */
const ollamaPaths = [
  'POST /api/pull', 'POST /api/push', 'GET /api/tags', 'POST /api/show', 'DELETE /api/delete', 'POST /api/create', 'POST /api/blobs/sha256:aa',
  'POST /api/copy', 'GET /api/ps', 'POST /api/generate', 'POST /api/chat', 'POST /api/embed', 'POST /api/embeddings', 'GET /api/version'
]

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
  for (const path of ollamaPaths) {
    const [method = '', url = ''] = path.split(' ')
    const there = routes.filter(({ matches }) => matches.test(url))
    t.strictSame([...new Set(there.map(({ name }) => name))], ['ollama'], path)
    t.ok(there.some(route => route.method === method), path)
  }
})
