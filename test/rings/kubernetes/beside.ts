import type { Test } from 'tap'
import { run } from '../../cli/support.js'
import { api, chat, writeHome } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { clusterHome, NAMESPACE, podsOf, slotFile, slotOf, UP } from './slots.js'
import type { Cluster } from '../support/cluster.js'

const SERVER = 'const [port, host] = process.argv.slice(1); require("http").createServer((q, s) => ' +
  's.end(JSON.stringify({ pid: process.pid }))).listen(+port, host)'

/** A process of this machine and a pod, under one gateway. */
export async function sideBySide (t: Test, here: Cluster): Promise<void> {
  const { home, start } = await clusterHome(t, here, {
    agent: slotFile(),
    drawer: slotFile({ options: 'model_storage = "claim"\nmodel_claim = "nowhere"\n' }).replace('device = "cpu"', 'device = "gpu-cuda"').replace(/resources = .*\n/, ''),
    here: 'type = "llm"\nprovider = "bare"\ndevice = "cpu"\n'
  })
  await writeHome(home, {
    'etc/svc/engines/bare.toml': `name = "bare"\napiVersion = 1\nneeds_model = false\nprocess = ${JSON.stringify(['node', '-e', SERVER, '{port}', '{host}'])}\n[surfaces.chat]\npath = "/v1/chat/completions"\n`
  })
  const gateway = await start()
  const pidOf = async (): Promise<number> => ((await api(gateway, 'POST', '/v1/chat/completions', { model: 'here', messages: [] })).json as { pid: number }).pid
  for (const name of ['here', 'agent']) t.match(await api(gateway, 'POST', `/api/slots/${name}/load`, {}), { status: 200 }, name)
  const [pid, [pod = '']] = [await pidOf(), await podsOf(here)]
  t.match(await (await chat(gateway.url, { max_tokens: 5 })).json(), { choices: [{ message: { content: String } }] })
  t.match((await run(['slot', 'list', '--url', gateway.url])).stdout, /^agent .*(?:ready|serving)[^]*^here .*(?:ready|serving)/m)

  process.kill(pid, 'SIGKILL')
  await eventually('the end of the process is told', async () => !UP.test((await slotOf(gateway, 'here')).state))
  t.match(await slotOf(gateway, 'agent'), { state: UP }, 'which concerns no other')
  t.not(await pidOf(), pid, 'and the next request brings it back')
  await here.kubectl('-n', NAMESPACE, 'delete', pod, '--grace-period=1')
  await eventually('the end of the pod is told', async () => !UP.test((await slotOf(gateway, 'agent')).state))
  t.match(await slotOf(gateway, 'here'), { state: UP })

  const said = (await run(['doctor', '--home', home], { columns: 80 })).stdout.replace(/\s+/g, ' ')
  t.match(said, /there is no claim 'nowhere' in namespace 'svc-ring' \(model_claim of slot 'drawer'\)/)
  await writeHome(home, { 'etc/svc/slots/drawer.toml': slotFile().replace('device = "cpu"', 'device = "gpu-cuda"').replace(/resources = .*\n/, '') })
  const again = (await run(['doctor', '--home', home], { columns: 80 })).stdout.replace(/\s+/g, ' ')
  t.match(again, /Kubernetes v1\.\d+\.\d+ at https:.*namespace 'svc-ring'/)
  if (here.folder !== null) t.match(again, /no node has nvidia\.com\/gpu, which slot 'drawer' requests; install its device plugin/)
  for (const name of ['here', 'agent']) t.match(await api(gateway, 'POST', `/api/slots/${name}/unload`, { force: true }), { status: 200 })
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}
