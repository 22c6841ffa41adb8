import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { spawnSvc, type SpawnedSvc } from '../../../cli/support.js'
import { ggufFile } from '../../../kernel/models/gguf-file.js'
import { FakeHub } from '../../services/hub/fake-hub.js'
import { until } from '../support.js'
import { manifest } from './support.js'

const bytes = ggufFile({ weights: 4_000_000 })

async function serve (home: string): Promise<SpawnedSvc & { readonly url: string }> {
  const svc = spawnSvc(['serve', '--home', home, '--port', '0', '--ready-json', '--log-level', 'warn'])
  const { url } = JSON.parse(await svc.firstLine) as { url: string }
  return { ...svc, url }
}

t.test('a gateway that is killed while its first models come', async t => {
  const hub = await FakeHub.start(t)
  hub.add('org/small', { files: { 'small.gguf': bytes } })
  const home = t.testdir({ bundles: { 'lite.json': manifest('Lite', [['chat.primary', 'small'], ['chat.coder', 'small']]) } })
  mkdirSync(join(home, 'etc/svc'), { recursive: true })
  writeFileSync(join(home, 'etc/svc/svc.toml'), '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n')
  writeFileSync(join(home, 'etc/svc/api.env'), `HF_ENDPOINT="${hub.url}"\nno_proxy="*"\nSVC_BUNDLES_DIR="${join(home, 'bundles')}"\n`)
  const file = (name: string): string => readFileSync(join(home, `etc/svc/slots/${name}.toml`), 'utf8')
  hub.pace = { chunk: 32 * 1024, ms: 1 }

  let svc = await serve(home)
  t.teardown(() => svc.child.kill('SIGKILL'))
  const applied = await fetch(`${svc.url}/api/install/apply`, {
    method: 'POST', body: JSON.stringify({ tier: 'lite' }), headers: { 'content-type': 'application/json' }
  })
  t.match(await applied.json(), { slots: [{ slot: 'agent', created: true, error: null }, { slot: 'coder', created: true, error: null }] })
  for (const share of [0.3, 0.6]) {
    await hub.reaches('small.gguf', bytes.length * share)
    svc.child.kill('SIGKILL')
    await once(svc.child, 'close')
    for (const name of ['agent', 'coder']) t.match(file(name), /enabled = false[^]*pending_model = "small"/, `${name} waits`)
    svc = await serve(home)
  }
  hub.pace = { chunk: 1024 * 1024, ms: 0 }
  t.match(await (await fetch(`${svc.url}/api/models/small/pull/stream`)).text(), /"state":"completed"/)
  await until(() => ['agent', 'coder'].every(name => /enabled = true/.test(file(name))), 'the slots have their model')
  for (const name of ['agent', 'coder']) {
    t.match(file(name), /default = "small"/)
    t.notMatch(file(name), /pending_model/)
  }
  svc.child.kill('SIGTERM')
  await svc.finished
})

t.test('killed between the slot and its pull', async t => {
  const hub = await FakeHub.start(t)
  hub.add('org/small', { files: { 'small.gguf': bytes } })
  const home = t.testdir({ bundles: { 'lite.json': manifest('Lite', [['chat.primary', 'small']]) } })
  const slots = join(home, 'etc/svc/slots')
  mkdirSync(slots, { recursive: true })
  writeFileSync(join(home, 'etc/svc/svc.toml'), '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n')
  writeFileSync(join(home, 'etc/svc/api.env'), `HF_ENDPOINT="${hub.url}"\nno_proxy="*"\nSVC_BUNDLES_DIR="${join(home, 'bundles')}"\n`)
  const slot = (more: string): string => `provider = "llm-server"\ndevice = "cpu"\nenabled = false\n[meta]\n${more}`
  writeFileSync(join(slots, 'agent.toml'), slot('pending_model = "small"\n'))
  writeFileSync(join(slots, 'later.toml'), slot('pending_model = "small"\npull_wanted = false\n'))
  writeFileSync(join(slots, 'lost.toml'), slot('pending_model = "nobody"\n'))
  const svc = await serve(home)
  t.teardown(() => svc.child.kill('SIGKILL'))
  const file = (name: string): string => readFileSync(join(slots, `${name}.toml`), 'utf8')
  await until(() => file('agent').includes('default = "small"') && file('later').includes('default = "small"'), 'the pull is made up for')
  await until(() => file('lost').includes('pull_failed'), 'what cannot be had is told')
  t.match(file('lost'), /pull_failed = "no source is known for 'nobody'"/)
  svc.child.kill('SIGTERM')
  await svc.finished
})
