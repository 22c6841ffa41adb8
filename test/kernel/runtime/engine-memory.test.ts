import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { cgroupMemory } from '../../../kernel/runtime/docker/cgroup-memory.js'
import type { ContainerRuntime } from '../../../kernel/contract/provider/engine-runtime.js'
import { connectDocker } from '../../../kernel/runtime/docker/docker-connect.js'
import { parseDockerHost, type DockerEndpoint } from '../../../kernel/runtime/docker/docker-endpoint.js'
import { createDockerRuntime } from '../../../kernel/runtime/docker/docker-runtime.js'
import { memoryOfStats } from '../../../kernel/runtime/docker/docker-stats.js'
import { EngineMemory } from '../../../kernel/runtime/engine-memory.js'
import { residentBytes } from '../../../kernel/runtime/process/process-memory.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'
import { FakeDocker, json } from './docker/fake-docker.js'
import { eventually, realClock, recordingLogger } from './support.js'

const MIB = 1024 * 1024

t.test('the control group of a container, wherever its manager puts it', async t => {
  const id = 'a'.repeat(64)
  const root = t.testdir({})
  const write = (group: string): void => {
    mkdirSync(join(root, group), { recursive: true })
    writeFileSync(join(root, group, 'memory.current'), `${3 * MIB}\n`)
  }
  write(`system.slice/docker-${id}.scope`)
  write(`user.slice/user-7.slice/user@7.service/user.slice/libpod-${id}.scope`)
  t.equal(await cgroupMemory('docker', id, root), 3 * MIB)
  t.equal(await cgroupMemory('podman', id, root, 7), 3 * MIB)
  t.equal(await cgroupMemory('podman', id, root, 8), null)
  t.equal(await cgroupMemory('docker', '../../etc', root), null, 'no id, no path')
})

t.test('what a container engine tells counts without the cache that the kernel takes back', async t => {
  t.equal(memoryOfStats({ memory_stats: { usage: 10, stats: { inactive_file: 4, anon: 5 } } }), 6, 'Docker on control groups 2')
  // of a Docker 28 on control groups 1, whose `docker stats` says 61.36 MiB; the engine's children have groups of their own
  t.equal(memoryOfStats({ memory_stats: {
    usage: 115_970_048, stats: { cache: 52_998_144, inactive_file: 4096, total_inactive_file: 51_634_176, total_rss: 60_780_544 }
  } }), 64_335_872, 'Docker on control groups 1')
  t.equal(memoryOfStats({ memory_stats: { usage: 62_251_008 } }), 62_251_008, 'podman behind the API of Docker tells no more')
  t.equal(memoryOfStats({ memory_stats: { usage: 10, stats: null } }), 10)
  t.equal(memoryOfStats({ memory_stats: { usage: 10, stats: { inactive_file: 11 } } }), 10, 'read at two moments')
  t.equal(memoryOfStats({ memory_stats: {} }), null, 'a container that has ended')
  t.equal(memoryOfStats({}), null)
})

t.test('a child process and all that it started', async t => {
  const root = t.testdir({
    7: { status: 'Name:\tengine\nVmRSS:\t    2048 kB\n', task: { 7: { children: '8 9 ' }, 70: { children: '' } } },
    8: { status: 'VmRSS:\t1024 kB\n', task: { 8: { children: '' } } },
    9: { status: 'Name:\tzombie\n', task: {} }
  })
  t.equal(await residentBytes(7, root), 3 * MIB)
  t.equal(await residentBytes(1, root), null, 'gone')
  if (process.platform === 'linux') t.ok((await residentBytes(process.pid) ?? 0) > MIB, 'and a real one')
})

interface Scene {
  readonly memory: EngineMemory
  readonly clock: FakeClock
  readonly asked: string[]
  readonly answers: Map<string, () => Promise<number | null>>
  readonly running: Set<string>
}

function scene (t: Test, here: (id: string) => number | null = () => null): Scene {
  const clock = new FakeClock()
  const asked: string[] = []
  const answers = new Map<string, () => Promise<number | null>>()
  const running = new Set(['a', 'b'])
  const runtime: Pick<ContainerRuntime, 'memoryHere' | 'memoryThere'> = {
    memoryHere: async id => here(id),
    memoryThere: (id, signal) => {
      asked.push(id)
      return Promise.race([
        answers.get(id)?.() ?? Promise.resolve(5),
        new Promise<never>((_resolve, reject) => { signal.addEventListener('abort', () => reject(signal.reason as Error)) })
      ])
    }
  }
  const memory = new EngineMemory({ runtime, clock, running: () => [...running] })
  t.teardown(() => memory.close())
  return { memory, clock, asked, answers, running }
}

t.test('a container engine is asked now and then, and nobody waits for it', async t => {
  const { memory, clock, asked, answers, running } = scene(t)
  answers.set('b', () => new Promise(() => {}))
  memory.notice('a')
  memory.notice('b')
  t.equal(await memory.read('a'), null, 'not known yet')
  await clock.advance(1)
  t.same(asked, ['a', 'b'])
  t.equal(await memory.read('a'), 5)
  t.equal(await memory.read('b'), null, 'one that does not answer holds up nobody')
  await clock.advance(5_000)
  answers.set('a', async () => 6)
  answers.set('b', async () => { throw new Error('busy') })
  await clock.advance(15_000)
  t.equal(await memory.read('a'), 6)
  running.delete('b')
  await clock.advance(15_000)
  t.same(asked, ['a', 'b', 'a', 'b', 'a'], 'an engine that is gone is not asked for')
  memory.close()
  t.equal(clock.pending, 0, 'no timer is left')
})

t.test('where the files of the host tell it, nobody is asked', async t => {
  const { memory, clock, asked } = scene(t, () => 7)
  memory.notice('a')
  await clock.advance(60_000)
  t.equal(await memory.read('a'), 7)
  t.same(asked, [])
  t.equal(clock.pending, 0)
})

t.test('the API of a container engine: one sample, by its address', async t => {
  const fake = await FakeDocker.start()
  const engine = await connectDocker(parseDockerHost(fake.host, {}) as DockerEndpoint, { clock: realClock, withinMs: 300_000 })
  const runtime = createDockerRuntime({ engine, clock: realClock, log: recordingLogger(), reason: 'test' })
  t.teardown(async () => {
    await runtime.close()
    await eventually('no connection is left', () => fake.openConnections === 0)
    await fake.close()
  })
  const { id } = fake.add('c', {})
  fake.routes.set(`GET /containers/${id}/stats`, (_request, response) => json(response, 200, {
    memory_stats: { usage: 9 * MIB, stats: { total_inactive_file: 2 * MIB } }
  }))
  t.equal(await runtime.memoryHere!(id), null)
  t.equal(await runtime.memoryThere!(id, new AbortController().signal), 7 * MIB)
  t.ok(fake.requests.some(line => line.includes(`${id}/stats?`) && line.includes('stream=false') && line.includes('one-shot=true')))
  t.equal(await runtime.memoryThere!('../../etc', new AbortController().signal), null)
})
