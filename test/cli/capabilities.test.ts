import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { textWidth } from '../../cli/terminal/text-width.js'
import imagegen from '../../plugins/providers/imagegen/index.js'
import llmServer from '../../plugins/providers/llm-server/index.js'
import sttEngine from '../../plugins/providers/stt-engine/index.js'
import ttsCpu from '../../plugins/providers/tts-cpu/index.js'
import ttsGpu from '../../plugins/providers/tts-gpu/index.js'
import { engines, files } from '../plugins/api/capabilities/host.js'
import { apiOf } from '../plugins/api/support.js'
import { run } from './support.js'

const api = apiOf('api-capabilities', 'api-slots', 'api-status', 'capabilities', 'library')

const CHOICES = `# mine
[selections.embed.embed]
device = "cpu"
provider = "llm-server"
model = "rocm-only"
enabled = true
[selections.embed.rerank]
device = "gpu-vulkan"
provider = "llm-server"
model = "judge"
enabled = true
[selections.voice.stt]
device = "cpu"
provider = "stt-engine"
model = "gone"
enabled = true
[selections.voice.tts]
device = "cpu"
provider = "tts-cpu"
model = "kokoro"
`
const stored = { ...files, 'etc/svc/capabilities.toml': CHOICES }

/** A home on disk that no gateway runs on. */
function homeOf (t: Tap, more: Readonly<Record<string, string>> = {}): string {
  const tree: Record<string, unknown> = {}
  for (const [path, text] of Object.entries({ ...stored, ...more })) {
    const parts = path.split('/')
    const name = parts.pop()!
    const folder = parts.reduce<Record<string, unknown>>((at, part) => (at[part] ??= {}) as Record<string, unknown>, tree)
    folder[name] = text
  }
  return t.testdir(tree as Parameters<Tap['testdir']>[0])
}
type Tap = Pick<typeof t, 'testdir'>

t.test('set chooses what serves a capability, and list shows it', async t => {
  const gateway = await api(t, { providers: engines, files })
  const svc = (...args: readonly string[]) => run(['capabilities', ...args, '--url', gateway.baseUrl])
  const set = await svc('set', 'embed', '--model', 'nomic', '--device', 'cpu', '--on')
  t.match(set, { code: 0, stdout: 'embed is served by nomic on cpu: slot embed is ready.\n' })
  const list = await svc('list')
  t.match(list.stdout, /^NAME +ON +MODEL +DEVICE +ENGINE +SLOT +STATE\nembed +yes +nomic +cpu +llm-server +embed +ready\nrerank +no +- +- +- +rerank +offline\n/)
  for (const line of list.stdout.trimEnd().split('\n')) t.ok(textWidth(line) <= 80, line)
  t.match(JSON.parse((await svc('list', '--json')).stdout), { backends: Array, catalogs: {}, selections: { embed: { embed: { model: 'nomic' } } } })
  t.match(await svc('set', 'embed', '--off'), { code: 0, stdout: 'embed is off. Switch it on: svc capabilities set embed --on\n' })
  t.match(JSON.parse((await svc('set', 'embed', '--model', 'none', '--json')).stdout), { selection: { model: null } })
  t.match(await svc('set', 'embed', '--model', 'nomic', '--device', 'cpu'), {
    code: 0, stdout: 'embed will be served by nomic on cpu once it is on: svc capabilities set embed --on\n'
  }, 'a choice does not switch it on, and says how')
  t.match(await svc('set', 'embed', '--model', 'rocm-only', '--device', 'cpu'), { code: 1, stderr: /capability\.illegal_backend_model_pair/ })
  t.match(await svc('set', 'embed'), { code: 2, stderr: /no changes were given/ })
  t.match(await svc('set', 'smell', '--on'), { code: 2, stderr: /Allowed choices are embed, rerank/ })
})

t.test('migrate on the files says and does what the gateway does', async t => {
  const home = homeOf(t)
  const gateway = await api(t, { providers: [imagegen, llmServer, sttEngine, ttsCpu, ttsGpu], files: stored })
  const file = join(home, 'etc/svc/capabilities.toml')
  const offline = await run(['capabilities', 'migrate', '--dry-run', '--json', '--home', home])
  t.equal(offline.code, 0, offline.stderr)
  const online = await run(['capabilities', 'migrate', '--dry-run', '--json', '--home', gateway.home])
  t.equal(online.code, 0, online.stderr)
  t.same(JSON.parse(offline.stdout), JSON.parse(online.stdout))
  t.match(JSON.parse(offline.stdout), { changed: 2, rows: [{ verdict: 'illegal_backend', after: 'gpu-rocm/llm-server' }, { verdict: 'ok' }, { verdict: 'unknown_model' }, { verdict: 'ok' }] })
  t.equal(readFileSync(file, 'utf8'), CHOICES)

  const shown = await run(['capabilities', 'migrate', '--dry-run', '--home', home])
  t.match(shown.stdout, /^SLOT +CHILD +MODEL +BEFORE +AFTER +REASON\nembed +embed +rocm-only/)
  t.match(shown.stdout, 'Nothing was changed. Run it without --dry-run to apply.')
  for (const line of shown.stdout.trimEnd().split('\n')) t.ok(textWidth(line) <= 80, line)
  t.match(await run(['capabilities', 'migrate', '--home', home]), { code: 0, stdout: /Changed: 2\./ })
  t.match(await run(['capabilities', 'migrate', '--home', gateway.home]), { code: 0, stdout: /Changed: 2\./ })
  t.equal(readFileSync(file, 'utf8'), await gateway.file('etc/svc/capabilities.toml'), 'the same file, byte for byte')
  t.match(await run(['capabilities', 'migrate', '--home', home]), { code: 0, stdout: 'Nothing to do: every choice is valid.\n' })
})

t.test('migrate on files touches nothing that it cannot judge', async t => {
  const plugin = homeOf(t, { 'etc/svc/svc.toml': '[plugins]\nallow = ["svc-plugin-foo"]\n' })
  t.match(await run(['capabilities', 'migrate', '--home', plugin]), { code: 1, stderr: /the engines of plugin svc-plugin-foo are unknown[^]*Start the gateway/ })
  const broken = homeOf(t, { 'etc/svc/capabilities.toml': `${CHOICES}enabled = "maybe"\n` })
  t.match(await run(['capabilities', 'migrate', '--home', broken]), { code: 1, stderr: /capabilities\.toml is not valid; fix it first\n.*enabled/ })
  t.match(readFileSync(join(broken, 'etc/svc/capabilities.toml'), 'utf8'), 'maybe')
})

t.test('migrate asks the gateway that was named, and no files then', async t => {
  t.match(await run(['capabilities', 'migrate', '--home', homeOf(t), '--url', 'http://127.0.0.1:9']), { code: 1, stderr: /no gateway answers/ })
})
