import { join } from 'node:path'
import t from 'tap'
import { liveHome, startLive } from '../e2e/live-gateway.js'
import { root } from '../repository.js'
import { brought, runClient, scriptsBeside } from './clients.js'

t.setTimeout(300_000)

t.test('clients of Hindsight as they come, at the embedded engine', async t => {
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n[memory]\nenabled = true\n'
  })
  const gateway = await startLive(t, home)
  const env = { RING_URL: gateway.url, RING_ENGINE: 'embedded', RING_SENTENCE: '', PYTHONDONTWRITEBYTECODE: '1' }
  await t.test('each call of the npm client ends as its users expect', async t => {
    const installed = await brought(t, 'js-clients.sh', 'memory')
    if (installed === null) return
    const scripts = await scriptsBeside(t, installed, 'memory')
    await runClient(t, [process.execPath, join(scripts, 'hindsight.mjs')], env)
  })
  await t.test('each call of the Python client ends as its users expect', async t => {
    const venv = await brought(t, 'python-clients.sh', 'memory')
    if (venv === null) return
    await runClient(t, [join(venv, 'bin/python'), join(root, 'test/rings/memory/hindsight.py')], env)
  })
  t.equal(await gateway.kill('SIGTERM'), 0)
})
