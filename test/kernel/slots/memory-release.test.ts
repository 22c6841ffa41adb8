import t from 'tap'
import { readGpuMemory } from '../../../kernel/hardware/gpu-memory.js'
import { hasSettled, watchRelease } from '../../../kernel/slots/gpu/memory-release.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'

t.test('the counters of all cards are added up; nothing known is null', async t => {
  const root = t.testdir({
    sys: { class: { drm: {
      'card0': { device: { mem_info_vram_used: '1000\n', mem_info_gtt_used: '200\n' } },
      'card1': { device: { mem_info_vram_used: '30\n' } },
      'card2': { device: {} },
      'card0-HDMI-A-1': {},
      'renderD128': {}
    } } }
  })
  t.strictSame(await readGpuMemory(root), { vramUsed: 1030, gttUsed: 200 })
  t.equal(await readGpuMemory(t.testdir()), null)
})

const MIB = 1024 * 1024

t.test('memory has settled when it fell and falls no more, or never fell', async t => {
  const cases: Array<[number, number[], boolean]> = [
    [900, [], false],
    [900, [900, 900, 900], false],
    [900, [900, 700, 500], false],
    [900, [900, 500, 500, 500], true],
    [900, [500, 500, 510], true],
    [900, [890, 890, 890], false],
    [900, Array.from({ length: 10 }, () => 900), true]
  ]
  for (const [before, readings, expected] of cases) {
    t.equal(hasSettled(before * MIB, readings.map(reading => reading * MIB)), expected, `${before}: ${readings.join(' ')}`)
  }
})

t.test('the wait ends when the driver has given the memory back, at the latest after five seconds', async t => {
  const clock = new FakeClock()
  const waitFor = async (readings: number[]): Promise<number> => {
    const read = (): Promise<{ vramUsed: number, gttUsed: number }> =>
      Promise.resolve({ vramUsed: (readings.length > 1 ? readings.shift()! : readings[0]!) * MIB, gttUsed: 0 })
    const released = await watchRelease(read, clock)
    const from = clock.now()
    let ended = NaN
    const done = released().then(() => { ended = clock.now() - from })
    await clock.advance(20_000)
    await done
    return ended
  }
  t.equal(await waitFor([900, 900, 900, 600, 300, 100]), 600, 'seven looks, 100 ms apart')
  t.equal(await waitFor([900, 900]), 900, 'an engine that used no GPU memory costs a second')
  t.equal(await waitFor(Array.from({ length: 1_000 }, (_, i) => 100_000 - 50 * i)), 5_000)
  await (await watchRelease(() => Promise.resolve(null), clock))()
  t.equal(clock.pending, 0)
})
