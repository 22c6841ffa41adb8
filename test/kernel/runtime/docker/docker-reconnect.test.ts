import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { LABEL_INSTANCE, type EngineExit } from '../../../../kernel/contract/provider/engine-runtime.js'
import { freePort } from '../../../ports.js'
import { get } from '../../../../kernel/testing/runtime-bench.js'
import { openDocker, testEngine } from '../engines.js'
import { eventually, uniqueName } from '../support.js'
import { tinyContainer } from '../../../../kernel/testing/tiny-engine.js'

const quiet = new AbortController().signal

/** A socket in front of the engine's that can be taken away and put back, as if the engine were restarted. */
class Relay {
  readonly path: string
  readonly #target: string
  readonly #server: Server
  readonly #open = new Set<Socket>()

  constructor (folder: string, host: string) {
    this.path = join(folder, 'relay.sock')
    this.#target = host.slice('unix://'.length)
    this.#server = createServer(client => {
      const engine = connect(this.#target)
      for (const [socket, other] of [[client, engine], [engine, client]] as const) {
        this.#open.add(socket)
        socket.on('error', () => other.destroy())
        socket.on('close', () => {
          this.#open.delete(socket)
          other.destroy()
        })
        socket.pipe(other)
      }
    })
  }

  async up (): Promise<void> {
    this.#server.listen(this.path)
    await once(this.#server, 'listening')
  }

  async down (): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#open) socket.destroy()
    await closed
  }
}

t.setTimeout(300_000)
for (const kind of ['docker', 'podman'] as const) {
  t.test(`${kind}: an end while the engine cannot be reached is told afterwards, once`, async t => {
    const engine = await testEngine(t, kind)
    if (engine === null) return
    const folder = await mkdtemp(join(tmpdir(), 'svc-relay-'))
    const relay = new Relay(folder, engine.host)
    await relay.up()
    const direct = await openDocker(engine.host)
    const runtime = await openDocker(`unix://${relay.path}`)
    const instance = uniqueName('test')
    t.teardown(async () => {
      for (const { id } of await direct.list({ [LABEL_INSTANCE]: instance })) await direct.remove(id)
      await Promise.all([runtime.close(), direct.close()])
      await relay.down()
      await rm(folder, { recursive: true })
    })
    const exits: EngineExit[] = []
    runtime.onExit(instance, exit => { exits.push(exit) })
    const launch = async (): Promise<{ id: string, port: number }> => {
      const port = await freePort()
      const wish = { name: uniqueName('svc-test'), port, labels: { [LABEL_INSTANCE]: instance }, env: {} }
      const id = await runtime.create(tinyContainer(engine.nodeImage, wish), quiet)
      await runtime.start(id, quiet)
      await eventually('it serves', () => get({ host: '127.0.0.1', port }, '/env'))
      return { id, port }
    }
    const [crashed, removed, kept] = [await launch(), await launch(), await launch()]
    await relay.down()
    await t.rejects(runtime.inspect(kept.id), { code: 'runtime.unavailable' })
    await get({ host: '127.0.0.1', port: crashed.port }, '/exit?code=6')
    await eventually('it ended', async () => (await direct.inspect(crashed.id))?.state === 'exited')
    await direct.remove(removed.id)
    t.same(exits, [])
    await relay.up()
    await eventually('both are told', () => exits.length === 2)
    const ends = new Map(exits.map(exit => [exit.id, exit.exitCode]))
    t.equal(ends.get(crashed.id), 6)
    t.equal(ends.get(removed.id), null, 'nobody knows the code of what is gone')
    await runtime.stop(kept.id, 60)
    await eventually('the stream works again', () => exits.length === 3)
    t.match(exits[2], { id: kept.id, exitCode: 0 })
  })
}
