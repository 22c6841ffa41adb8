import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { packageRoot } from '../../kernel/config/package-root.js'
import { testEngine } from '../kernel/runtime/engines.js'
import { authorChecks } from '../template/authors.js'
import { engineChecks } from '../template/engine-checks.js'
import { sh } from '../template/shell.js'
import { readWav, type Wav } from '../template/wav.js'
import { openWorkshop, startGateway, type LiveGateway, type Workshop } from '../template/workshop.js'

t.setTimeout(600_000)

const run = promisify(execFile)
const WORDS = 'one two three four five six seven eight nine ten'
const IMAGE = 'localhost/svc-plugin-espeak:0.1.0'

t.test('the plugin template, in the hands of somebody who has only packages', async t => {
  const shop = await openWorkshop(t)

  await t.test('it installs, builds, passes its own tests and packs', async t => {
    await sh(t, shop.plugin, shop.env, shop.commands.build)
    const { stdout } = await run('tar', ['-tzf', 'svc-plugin-espeak-0.1.0.tgz'], { cwd: shop.plugin })
    t.strictSame(stdout.trim().split('\n').sort(), [
      'Dockerfile', 'README.md', 'dist/src/engine.d.ts', 'dist/src/engine.js', 'dist/src/index.d.ts', 'dist/src/index.js', 'package.json'
    ].map(file => `package/${file}`))
    const [own, gateway] = await Promise.all(['plugin-template/', ''].map(async folder =>
      JSON.parse(await readFile(join(packageRoot, folder, 'package.json'), 'utf8')) as PackageJson))
    t.match(gateway!.devDependencies, { 'typescript-native': `npm:typescript@${own!.devDependencies.typescript}` }, 'its compiler is the one that the gateway is built with')
    t.equal(own!.devDependencies['@types/node'], gateway!.devDependencies['@types/node'])
    t.match(own, { version: gateway!.version, svc: { apiVersion: 1 }, keywords: ['svc-plugin'] })
  })

  await t.test('its engine says what it cannot do, and ends what it is doing with its client', t => engineChecks(t, shop))

  await t.test('an author who has nothing but the npm package', t => authorChecks(t, shop))

  await t.test('a running gateway takes it, and its slot speaks as a child process', async t => {
    if (!await isInstalled('espeak-ng')) return skipped(t, 'espeak-ng is not installed; run: test/engines/install-packages.sh speech')
    await story(t, shop, await startGateway(t, shop, 'process'))
  })

  await t.test('the same slot in a container', async t => {
    const engine = await testEngine(t, 'docker')
    if (engine === null) return
    const env = { DOCKER_HOST: engine.host, DOCKER_BUILDKIT: '0' }
    t.teardown(() => sh(t, shop.folder, { ...shop.env, ...env },
      `docker ps --all --quiet --filter ancestor=${IMAGE} | xargs --no-run-if-empty docker rm --force\ndocker image rm --force ${IMAGE}`))
    await sh(t, shop.plugin, { ...shop.env, ...env }, shop.commands.image.replace('docker build', `docker build --build-arg BASE=${engine.nodeImage}`))
    const gateway = await startGateway(t, shop, 'docker', env)
    await story(t, shop, gateway, async () => {
      t.match(await (await fetch(`${gateway.url}/api/slots/tts`)).json(), { runtime: 'container', actual_image: IMAGE })
    })
  })
})

/** Add, load, speak, remove, in the words of the README. `meanwhile` runs while the engine does. */
async function story (t: Test, shop: Workshop, gateway: LiveGateway, meanwhile = async (): Promise<void> => {}): Promise<void> {
  const script = (text: string): Promise<string> => sh(t, shop.plugin, gateway.env, text.replaceAll('http://127.0.0.1:8080', gateway.url))
  const get = async (path: string): Promise<unknown> => await (await fetch(`${gateway.url}${path}`)).json()

  t.match(await script(shop.commands.add), /Plugin espeak is active\.[^]*Slot tts is ready/)
  const { plugins } = await get('/api/plugins') as { plugins: Array<{ name: string }> }
  t.match(plugins.find(({ name }) => name === 'espeak'), {
    state: 'active', kind: 'provider', origin: 'package:svc-plugin-espeak@0.1.0', providers: ['espeak']
  })
  t.match(await get('/api/slots/tts/voices'), { source: 'live', voices: [{ id: String, name: String }] })
  await meanwhile()

  await script(shop.commands.speak)
  const once = await heard(t, join(shop.plugin, 'speech.wav'))
  await script(shop.commands.speak.replace(WORDS, `${WORDS} ${WORDS}`))
  const twice = await heard(t, join(shop.plugin, 'speech.wav'))
  t.ok(once.seconds > 0.2, `${once.seconds} s for ten words`)
  t.ok(Math.abs(twice.seconds / once.seconds - 2) < 0.3, `${twice.seconds} s for twenty`)

  await script(shop.commands.remove)
  const left = await get('/api/plugins') as { plugins: Array<{ name: string }> }
  t.notOk(left.plugins.some(({ name }) => name === 'espeak'), 'the plugin is gone')
  t.equal((await fetch(`${gateway.url}/api/slots/tts`)).status, 404)
  t.equal(await gateway.end('SIGTERM'), 0, 'the gateway stops cleanly')
}

/** A file that a player takes for real speech. */
async function heard (t: Test, path: string): Promise<Wav> {
  const wav = readWav(await readFile(path))
  t.ok(wav.loudness > 500, `loudness ${Math.round(wav.loudness)}`)
  if (await isInstalled('soxi')) {
    const { stdout, stderr } = await run('soxi', ['-D', path])
    t.ok(Math.abs(Number(stdout) - wav.seconds) < 0.01, `sox sees ${stdout.trim()} s`)
    t.equal(stderr, '', 'sox has no complaint')
  }
  return wav
}

async function isInstalled (program: string): Promise<boolean> {
  return await run('which', [program]).then(() => true, () => false)
}

function skipped (t: Test, why: string): void {
  if (process.env.SVC_TEST_CONTAINERS === 'required') t.fail(`SVC_TEST_CONTAINERS=required, but ${why}`)
  else t.comment(`SKIPPED: ${why}`)
  t.pass('nothing to test here')
}

interface PackageJson {
  readonly version: string
  readonly devDependencies: Readonly<Record<string, string>>
}
