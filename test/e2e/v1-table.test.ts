import t from 'tap'
import builtins from '../../plugins/index.js'
import { createTestGateway } from '../../kernel/testing/index.js'
import { endpoints } from './v1-endpoints.js'

/** `constructor.name` tells the class in either client. */
async function failure (work: PromiseLike<unknown>): Promise<{ class: string, status: number | undefined, message: string }> {
  try {
    await work
  } catch (error) {
    const { status, message, constructor } = error as Error & { status?: number }
    return { class: constructor.name, status, message }
  }
  return { class: 'none', status: 200, message: '' }
}

t.test('every endpoint of /v1 is run by a client', async t => {
  const gateway = await createTestGateway({ builtins, files: { 'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n' } })
  t.teardown(() => gateway.close())
  const { plugins } = await (await gateway.fetch('/api/plugins')).json() as { plugins: Array<{ routes: string[] }> }
  const routes = plugins.flatMap(plugin => plugin.routes).filter(route => route.includes(' /v1/'))
  t.strictSame(routes.sort(), Object.keys(endpoints).sort(), 'the table has what the gateway has')

  for (const [route, { works, ask }] of Object.entries(endpoints)) {
    t.ok(works.length > 0, route)
    if (ask === null) continue
    t.match(await failure(ask(gateway.baseUrl, 'nobody')), { class: 'NotFoundError', status: 404, message: /nobody/ }, route)
    if (route.startsWith('POST')) t.match(await failure(ask(gateway.baseUrl, ' ')), { class: 'BadRequestError', status: 400, message: /model/ }, route)
  }
})
