import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { run } from '../../cli/support.js'
import { api, writeHome } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { clusterHome, ENGINES, NAMESPACE, slotFile } from './slots.js'
import type { Cluster } from '../support/cluster.js'

const OTHER = `${NAMESPACE}-other`

/** Another namespace in svc.toml, while an engine runs in the former one. */
export async function moves (t: Test, here: Cluster): Promise<void> {
  await here.kubectl('create', 'namespace', OTHER)
  t.teardown(() => here.kubectl('delete', 'namespace', OTHER, '--wait=false').catch(() => {}))
  const pods = (namespace: string): Promise<string> => here.kubectl('-n', namespace, 'get', 'pods', '-l', ENGINES, '-o', 'name')
  const { home, start } = await clusterHome(t, here, { agent: slotFile() })
  let gateway = await start()
  t.match(await api(gateway, 'POST', '/api/slots/agent/load', {}), { status: 200 })
  await gateway.kill('SIGKILL')
  t.match(await pods(NAMESPACE), /svc-agent-/)

  const settings = await readFile(join(home, 'etc/svc/svc.toml'), 'utf8')
  await writeHome(home, { 'etc/svc/svc.toml': settings.replace(`namespace = "${NAMESPACE}"`, `namespace = "${OTHER}"`) })
  t.match((await run(['doctor', '--home', home], { columns: 80 })).stdout.replace(/\s+/g, ' '), /may be left in namespace 'svc-ring' of .*delete pods -l svc\.local\/instance=/)
  gateway = await start()
  t.match(await api(gateway, 'POST', '/api/slots/agent/load', {}), { status: 200 }, 'no slot waits for that')
  await eventually('its pod is gone', async () => await pods(NAMESPACE) === '')
  t.match(await pods(OTHER), /^pod\/svc-agent-[0-9a-f]{12}\n$/)
  await eventually('nothing is left to tell', async () => !JSON.stringify((await api(gateway, 'GET', '/api/status')).json).includes('may be left'))
  t.notMatch((await run(['doctor', '--home', home], { columns: 80 })).stdout, /may be left/)
  t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })
  t.equal(await pods(OTHER), '')
  t.equal(await gateway.kill('SIGTERM'), 0)
}
