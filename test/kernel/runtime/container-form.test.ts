import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { LABEL_INSTANCE, type ContainerForm } from '../../../kernel/contract/provider/engine-runtime.js'
import { freePort } from '../../ports.js'
import { get } from '../../../kernel/testing/runtime-bench.js'
import { openDocker, testEngine } from './engines.js'
import { collect, eventually, uniqueName } from './support.js'
import { tinyContainer } from '../../../kernel/testing/tiny-engine.js'

const quiet = new AbortController().signal
const REPORT = `
  const { readFileSync, statSync, writeFileSync } = require('fs')
  const status = readFileSync('/proc/self/status', 'utf8')
  const attempt = work => { try { return String(work()) } catch (error) { return error.code } }
  console.log(JSON.stringify({
    groups: /^Groups:\\t(.*)$/m.exec(status)[1].trim().split(' '),
    effective: /^CapEff:\\t(.*)$/m.exec(status)[1],
    first: readFileSync('/proc/1/cmdline', 'utf8').split('\\0')[0],
    limit: /^Max open files\\s+\\d+\\s+(\\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))[1],
    shm: Number(/^\\S+ \\/dev\\/shm tmpfs (.*?) /m.exec(readFileSync('/proc/mounts', 'utf8'))[1].match(/size=(\\d+)k/)[1]),
    device: statSync('/dev/fuse').isCharacterDevice(),
    model: readFileSync('/models/model: one,two.gguf', 'utf8'),
    writeModel: attempt(() => writeFileSync('/models/new', '')),
    writeCache: attempt(() => writeFileSync('/cache/new', 'kept')),
    cwd: process.cwd()
  }))`

t.setTimeout(600_000)
for (const kind of ['docker', 'podman'] as const) {
  t.test(`what ${kind} is told of a container is what it does`, async t => {
    const engine = await testEngine(t, kind)
    if (engine === null) return
    const instance = uniqueName('test')
    const runtime = await openDocker(engine.host)
    t.teardown(async () => {
      for (const { id } of await runtime.list({ [LABEL_INSTANCE]: instance })) await runtime.remove(id)
      await runtime.close()
    })
    const launch = async (form: Partial<ContainerForm>): Promise<{ id: string, port: number }> => {
      const port = await freePort()
      const wish = { name: uniqueName('svc-test'), port, labels: { [LABEL_INSTANCE]: instance }, env: {} }
      const tiny = tinyContainer(engine.nodeImage, form.network === 'host' ? { ...wish, network: 'host' } : wish)
      const id = await runtime.create({ ...tiny, form: { ...tiny.form, ...form } }, quiet)
      return { id, port }
    }

    t.test('what a container is given, and what not', async t => {
      const folder = t.testdir({ models: {}, cache: {} })
      await writeFile(join(folder, 'models', 'model: one,two.gguf'), 'weights')
      const { id } = await launch({
        entrypoint: ['node'],
        command: ['-e', REPORT],
        mounts: [
          { source: join(folder, 'models'), target: '/models', readOnly: true },
          { source: join(folder, 'cache'), target: '/cache', readOnly: false }
        ],
        devices: ['/dev/fuse'],
        groups: [4242, 4343],
        // nproc too: given any limit, Podman sets its own default for it, which some machines do not allow
        ulimits: { nofile: { soft: 2000, hard: 3000 }, nproc: { soft: 4096, hard: 4096 } },
        shmSizeBytes: 32 * 1024 * 1024,
        securityOpts: ['label=disable'],
        workingDir: '/usr'
      })
      await runtime.start(id, quiet)
      const [line] = await collect(runtime.logs(id, { tail: 50, follow: true, signal: quiet }))
      const report = JSON.parse(line ?? '{}') as Record<string, unknown>
      t.match(report, {
        limit: '3000', shm: 32 * 1024, device: true, model: 'weights', writeModel: 'EROFS', writeCache: 'undefined', cwd: '/usr'
      })
      t.ok((report.groups as string[]).includes('4242') && (report.groups as string[]).includes('4343'), 'numeric groups')
      t.match(report.first, /init|catatonit/, 'process 1 is an init')
      t.notMatch(report.effective, /^0*[13]fffffffff$/, 'not privileged')
    })

    t.test('host network: reached on this host, and a taken port is noticed before the start', async t => {
      const { id, port } = await launch({ network: 'host', publishHost: null })
      await runtime.start(id, quiet)
      const address = { host: '127.0.0.1', port }
      t.match(await eventually('it serves', () => get(address, '/env')), { PORT: String(port) })
      t.same((await runtime.inspect(id))?.address, address)
      const again = await openDocker(engine.host)
      t.same((await again.inspect(id))?.address, address, 'also by the next gateway')
      await again.close()
      const wish = { name: uniqueName('svc-test'), port, labels: { [LABEL_INSTANCE]: instance }, env: {}, network: 'host' as const }
      const rival = await runtime.create(tinyContainer(engine.nodeImage, wish), quiet)
      await t.rejects(runtime.start(rival, quiet), { code: 'slot.port_conflict', details: { port } })
      await runtime.stop(id, 5)
    })

    t.test('an image or a mount that is not there', async t => {
      await t.rejects(launch({ image: 'svc-test/nowhere:1' }), { code: 'runtime.image_missing', message: /svc-test\/nowhere:1 is missing; pull it first/ })
      const nowhere = join(t.testdir(), 'nowhere')
      const mounts = [{ source: nowhere, target: '/models', readOnly: true }]
      const trying = async (): Promise<void> => {
        const { id } = await launch({ mounts })
        await runtime.start(id, quiet)
      }
      await t.rejects(trying(), { code: 'runtime.failed', message: /nowhere.*create the path or correct it/s })
      await t.rejects(mkdir(join(nowhere, 'x')), { code: 'ENOENT' }, 'and none is made in its place')
    })

    t.test('a program that is not there', async t => {
      const { id } = await launch({ command: ['/no/such/program'] })
      await runtime.start(id, quiet).then(
        // with an init the start succeeds and the init fails
        () => eventually('it ended', async () => (await runtime.inspect(id))?.state === 'exited'),
        (error: unknown) => t.match(error, { code: 'runtime.failed', message: /no\/such\/program/ }))
    })

    t.test('an engine that has no CDI devices says so', async t => {
      const trying = async (): Promise<void> => {
        const { id } = await launch({ cdiDevices: ['nvidia.com/gpu=all'] })
        await runtime.start(id, quiet)
      }
      await t.rejects(trying(), { code: 'runtime.failed', message: /CDI|cdi/ }, 'an engine without them says so')
    })
  })
}
