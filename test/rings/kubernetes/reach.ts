import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { api, chat } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { clusterHome, NAMESPACE, podsOf, row, slotFile } from './slots.js'
import type { Cluster } from '../support/cluster.js'

/** By the address of the pod is how all the others are. */
export async function reaches (t: Test, here: Cluster): Promise<void> {
  await row(t, here, 'forwarded by the API server', async t => {
    const { start } = await clusterHome(t, here, { agent: slotFile() }, 'reach = "forward"\n')
    const gateway = await start()
    t.match(await (await chat(gateway.url, { max_tokens: 5 })).json(), { choices: [{ message: { content: String } }] })
    t.match((await (await chat(gateway.url, { max_tokens: 5, stream: true })).text()), /\[DONE\]/)
    t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
  const skip = here.folder === null ? 'the ring plays kube-proxy, which the cluster of SVC_TEST_KUBECONFIG may have' : false
  await row(t, here, 'by a port of the node', async t => {
    const { home, start } = await clusterHome(t, here, { agent: slotFile() }, 'reach = "node-port"\nnode_host = "127.0.0.1"\n')
    let gateway = await start()
    const load = api(gateway, 'POST', '/api/slots/agent/load', {})
    await proxy(t, here)
    t.match(await load, { status: 200 })
    t.match(await (await chat(gateway.url, { max_tokens: 5 })).json(), { choices: [{ message: { content: String } }] })
    const services = (): Promise<string> => here.kubectl('-n', NAMESPACE, 'get', 'services', '-o', 'name')
    t.match(await services(), /^service\/svc-agent-[0-9a-f]{12}\n$/)
    await gateway.kill('SIGKILL')
    // it is written a second after the launch: the kill may have been earlier
    await rm(join(home, 'var/lib/svc/slots/agent/state.json'), { force: true })
    gateway = await start()
    t.match(await (await chat(gateway.url, { max_tokens: 5 })).json(), { choices: [{ message: { content: String } }] }, 'found again by the next gateway')
    t.equal((await podsOf(here)).length, 1)
    t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })
    await eventually('the Service goes with its pod', async () => await services() === '')
    t.equal(await gateway.kill('SIGTERM'), 0)
  }, skip)
}

/** What kube-proxy would do, which this cluster has not: the port of the one Service leads to the pod that its selector finds. */
async function proxy (t: Test, { kubectl }: Cluster): Promise<void> {
  interface Port { readonly nodePort: number, readonly targetPort: number }
  interface Row { readonly spec: { readonly selector: Record<string, string>, readonly ports: readonly Port[] } }
  const service = await eventually('a Service', async () =>
    (JSON.parse(await kubectl('-n', NAMESPACE, 'get', 'services', '-o', 'json')) as { items: Row[] }).items[0])
  const [[key, value] = ['', '']] = Object.entries(service.spec.selector)
  const [{ nodePort, targetPort } = { nodePort: 0, targetPort: 0 }] = service.spec.ports
  const address = await eventually('its pod', async () =>
    /\S+/.exec(await kubectl('-n', NAMESPACE, 'get', 'pods', '-l', `${key}=${value}`, '-o', 'jsonpath={.items[0].status.podIP}'))?.[0])
  const server = createServer(socket => {
    const other = connect(targetPort, address)
    for (const [one, two] of [[socket, other], [other, socket]] as const) one.on('error', () => {}).on('close', () => two.destroy()).pipe(two)
  })
  server.listen(nodePort, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
}
