import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ContainerRuntime, EngineExit } from '../../../../kernel/contract/provider/engine-runtime.js'
import { ENGINE_ID_VARIABLE } from '../../../../kernel/runtime/process/process-env.js'
import { openProcessRuntime } from '../../../../kernel/runtime/process/process-runtime.js'
import { createProcessTable, engineProcesses } from '../../../../kernel/runtime/process/process-table.js'
import { oneFile } from '../../../one-file.js'
import { freePort } from '../../../ports.js'
import { get } from '../../../../kernel/testing/runtime-bench.js'
import { eventually, realClock, recordingLogger } from '../support.js'
import { tinyProcess } from '../../../../kernel/testing/tiny-engine.js'

const labels = { 'svc.instance': 'doomed' }
const quiet = new AbortController().signal
const table = createProcessTable(process.platform)
const GATEWAY = await oneFile(join(import.meta.dirname, '../fixtures', 'doomed-gateway.js'))

async function open (t: Test, stateDir: string): Promise<{ runtime: ContainerRuntime, exits: EngineExit[], log: string[] }> {
  const log = recordingLogger()
  const runtime = await openProcessRuntime({ stateDir, env: process.env, clock: realClock, log, reason: 'test' })
  const exits: EngineExit[] = []
  runtime.onExit('doomed', exit => { exits.push(exit) })
  t.teardown(async () => {
    for (const { id } of await runtime.list({})) await runtime.remove(id)
    await runtime.close()
  })
  return { runtime, exits, log: log.lines }
}

/** Runs a gateway until it has been killed at the moment; returns what it printed. */
async function doomedGateway (stateDir: string, port: number, moment: string, afterMs = 0): Promise<string> {
  const gateway = spawn(process.execPath, [GATEWAY, stateDir, String(port), moment], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  gateway.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
    if (printed.includes('\n')) setTimeout(() => gateway.kill('SIGKILL'), afterMs)
  })
  const [, signal] = await once(gateway, 'close') as [number | null, string | null]
  if (signal !== 'SIGKILL') throw new Error(`the gateway ended by itself at ${moment}`)
  return printed.trim()
}

function processesOf (id: string): Promise<readonly { readonly pid: number }[]> {
  return engineProcesses(table, null, `${ENGINE_ID_VARIABLE}=${id}`)
}

t.test('an engine survives kill -9 of its gateway and is adopted', async t => {
  const stateDir = t.testdir()
  const port = await freePort()
  const id = await doomedGateway(stateDir, port, 'running')
  await eventually('it goes on serving', () => get({ host: '127.0.0.1', port }, '/env'))
  const { runtime, exits } = await open(t, stateDir)
  const [found] = await runtime.list(labels)
  t.match(found, { id, state: 'running', address: { host: '127.0.0.1', port }, name: 'doomed', labels })
  if (process.platform === 'linux') t.ok((await runtime.memoryHere!(id) ?? 0) > 0, 'its memory is known')
  await get(found!.address!, '/exit?code=4')
  await eventually('its end is told', () => exits.length === 1)
  t.equal(await runtime.memoryHere!(id), null)
  t.same(exits, [{ id, labels, exitCode: null }], 'without a code: it was not our child')
})

t.test('killed between record and spawn: nothing runs and the record says so', async t => {
  const stateDir = t.testdir()
  await doomedGateway(stateDir, await freePort(), 'before-spawn')
  const [id] = await readdir(join(stateDir, 'runtime'))
  t.match(await readFile(join(stateDir, 'runtime', id!, 'record.json'), 'utf8'), '"starting"')
  const { runtime } = await open(t, stateDir)
  t.match(await runtime.list(labels), [{ id, state: 'exited', exitCode: null, address: null }])
  t.same(await processesOf(id!), [])
})

t.test('killed between spawn and record: the engine is found by its token', async t => {
  const stateDir = t.testdir()
  const port = await freePort()
  await doomedGateway(stateDir, port, 'after-spawn')
  const [id] = await readdir(join(stateDir, 'runtime'))
  t.match(await readFile(join(stateDir, 'runtime', id!, 'record.json'), 'utf8'), '"starting"')
  const { runtime, exits } = await open(t, stateDir)
  t.match(await runtime.list(labels), [{ id, state: 'running', address: { host: '127.0.0.1', port } }])
  await eventually('it serves', () => get({ host: '127.0.0.1', port }, '/env'))
  await runtime.stop(id!, 5)
  await eventually('its end is told', () => exits.length === 1)
  t.same(await processesOf(id!), [])
})

t.test('killed at any moment: every engine is found again, and nothing else runs', async t => {
  const seen: string[] = []
  for (let round = 0; round < 12; round++) {
    const stateDir = t.testdir()
    await doomedGateway(stateDir, await freePort(), 'any', round * 1.5)
    const ids = await readdir(join(stateDir, 'runtime'))
    const runtime = await openProcessRuntime({ stateDir, env: process.env, clock: realClock, log: recordingLogger(), reason: 'test' })
    const engines = await runtime.list({})
    for (const id of ids) {
      // one that the kill caught before it was the engine may end between the two looks
      await eventually('what runs is listed as running, and the other way round', async () => {
        const running = (await runtime.list({})).find(engine => engine.id === id)?.state === 'running'
        return running === ((await processesOf(id)).length > 0)
      })
    }
    seen.push(engines[0]?.state ?? 'nothing')
    for (const { id } of engines) await runtime.remove(id)
    for (const id of ids) t.same(await processesOf(id), [])
    await runtime.close()
  }
  t.comment(`states met: ${seen.join(' ')}`)
})

t.test('an engine that ended while no gateway ran counts as exited, and what it left is ended', async t => {
  const stateDir = t.testdir()
  const port = await freePort()
  const id = await doomedGateway(stateDir, port, 'running')
  const address = { host: '127.0.0.1', port }
  await eventually('it serves', () => get(address, '/env'))
  const [engine] = await processesOf(id)
  await get(address, '/spawn')
  await get(address, '/spawn?detached=1')
  await get(address, '/exit?code=1')
  await eventually('only its children are left', async () =>
    (await processesOf(id)).length === 2 && await table.find(engine!.pid) === null)
  const { runtime, exits } = await open(t, stateDir)
  t.match(await runtime.list(labels), [{ id, state: 'exited', exitCode: null }])
  t.same(await processesOf(id), [])
  t.same(exits, [], 'list says it; nothing ended since')
})

t.test('children of an engine end with it', async t => {
  const { runtime, exits } = await open(t, t.testdir())
  for (const how of ['stop', 'crash'] as const) {
    const port = await freePort()
    const id = await runtime.create(tinyProcess({ name: how, port, labels, env: {} }), quiet)
    await runtime.start(id, quiet)
    const address = { host: '127.0.0.1', port }
    await eventually('it serves', () => get(address, '/env'))
    await get(address, '/spawn')
    await get(address, '/spawn?detached=1')
    t.equal((await processesOf(id)).length, 3)
    if (how === 'stop') await runtime.stop(id, 5)
    else await get(address, '/exit?code=9')
    await eventually('its end is told', () => exits.some(exit => exit.id === id))
    t.same(await processesOf(id), [], `${how}: also the one that left the group`)
  }
})

t.test('a pid that went to somebody else is left alone', async t => {
  const stateDir = t.testdir()
  const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore', detached: true })
  t.teardown(() => bystander.kill('SIGKILL'))
  const entry = await eventually('the bystander runs', () => table.find(bystander.pid!))
  const id = `proc-${'ab'.repeat(12)}`
  const spec = tinyProcess({ name: 'reused', port: await freePort(), labels, env: {} })
  await mkdir(join(stateDir, 'runtime', id), { recursive: true })
  await writeFile(join(stateDir, 'runtime', id, 'record.json'), JSON.stringify({
    version: 1, id, spec, state: 'running', startedAt: 1, exitCode: null, leader: { ...entry, startId: `${entry.startId}1` }
  }))
  const { runtime } = await open(t, stateDir)
  t.match(await runtime.inspect(id), { state: 'exited' })
  await runtime.stop(id, 1)
  await runtime.remove(id)
  t.same(await table.find(bystander.pid!), entry, 'it runs on')
})

t.test('a damaged record is cleared away together with its process', async t => {
  const stateDir = t.testdir()
  const port = await freePort()
  const id = await doomedGateway(stateDir, port, 'running')
  await writeFile(join(stateDir, 'runtime', id, 'record.json'), '{')
  await mkdir(join(stateDir, 'runtime', 'somebody-elses'))
  const { runtime, log } = await open(t, stateDir)
  t.same(await runtime.list({}), [])
  t.same(await processesOf(id), [])
  t.match(log.join('\n'), /missing or damaged/)
  t.same(await readdir(join(stateDir, 'runtime')), ['somebody-elses'], 'what is not ours stays')
  await rmdir(join(stateDir, 'runtime', 'somebody-elses'))
})
