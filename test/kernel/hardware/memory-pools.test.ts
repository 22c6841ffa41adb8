import t from 'tap'
import { readMemoryPools } from '../../../kernel/hardware/memory-pools.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'

const MIB = 1024 * 1024
const meminfo = (totalMb: number, availableMb: number): string =>
  `MemTotal:       ${totalMb * 1024} kB\nMemFree:         1024 kB\nMemAvailable:   ${availableMb * 1024} kB\nBuffers:            10 kB\n`

/** The counters that amdgpu keeps below a card. */
function amdgpu (card: string, slot: string, { vram, gtt }: Record<'vram' | 'gtt', readonly [total: number, used: number]>): Record<string, string> {
  const device = `sys/class/drm/${card}/device`
  return {
    [`${device}/uevent`]: `DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_SLOT_NAME=${slot}\n`,
    [`${device}/mem_info_vram_total`]: `${vram[0] * MIB}\n`,
    [`${device}/mem_info_vram_used`]: `${vram[1] * MIB}\n`,
    [`${device}/mem_info_gtt_total`]: `${gtt[0] * MIB}\n`,
    [`${device}/mem_info_gtt_used`]: `${gtt[1] * MIB}\n`
  }
}

const machines: Readonly<Record<string, { tree: Record<string, string>, pools: string[] }>> = {
  'Strix Halo: one memory, most of it mapped for the GPU': {
    tree: { 'proc/meminfo': meminfo(128_000, 40_000), ...amdgpu('card1', '0000:c5:00.0', { vram: [512, 480], gtt: [112_000, 80_000] }) },
    pools: ['ram  128000 40000', 'vram 0000:c5:00.0 512 32', 'gtt 0000:c5:00.0 112000 32000']
  },
  'two AMD cards beside a display adapter': {
    tree: {
      'proc/meminfo': meminfo(64_000, 50_000),
      ...amdgpu('card0', '0000:03:00.0', { vram: [24_560, 20_000], gtt: [32_000, 100] }),
      ...amdgpu('card2', '0000:43:00.0', { vram: [16_368, 0], gtt: [32_000, 0] }),
      'sys/class/drm/card1/device/uevent': 'DRIVER=ast\n',
      'sys/class/drm/card0-DP-1/status': 'connected\n',
      'sys/class/drm/renderD128/device/uevent': 'DRIVER=amdgpu\n'
    },
    pools: [
      'ram  64000 50000', 'vram 0000:03:00.0 24560 4560', 'gtt 0000:03:00.0 32000 31900', 'vram 0000:43:00.0 16368 16368', 'gtt 0000:43:00.0 32000 32000'
    ]
  },
  'NVIDIA or Intel: the host alone': {
    tree: { 'proc/meminfo': meminfo(32_000, 8_000), 'sys/class/drm/card0/device/uevent': 'DRIVER=i915\n' }, pools: ['ram  32000 8000']
  },
  'a virtual machine with no GPU': { tree: { 'proc/meminfo': meminfo(4_000, 3_000) }, pools: ['ram  4000 3000'] },
  'counters that make no sense': {
    tree: {
      'proc/meminfo': 'MemTotal: lots\n',
      ...amdgpu('card0', '0000:03:00.0', { vram: [1000, 2000], gtt: [0, 0] }),
      'sys/class/drm/card0/device/mem_info_gtt_used': 'unknown\n'
    },
    pools: ['vram 0000:03:00.0 1000 0']
  },
  'another system': { tree: { 'etc/hosts': '' }, pools: [] }
}

t.test('memory pools are read on recorded machines', async t => {
  for (const [name, { tree, pools }] of Object.entries(machines)) {
    const folders: Record<string, unknown> = {}
    for (const [path, content] of Object.entries(tree)) {
      const parts = path.split('/')
      const file = parts.pop()!
      const folder = parts.reduce<Record<string, unknown>>((at, part) => (at[part] ??= {}) as Record<string, unknown>, folders)
      folder[file] = content
    }
    t.test(name, async t => {
      const clock = new FakeClock()
      const read = await readMemoryPools(clock, t.testdir(folders as Parameters<typeof t.testdir>[0]))
      t.strictSame(read.map(({ kind, gpu, totalMb, availableMb }) => `${kind} ${gpu} ${totalMb} ${availableMb}`), pools)
      t.equal(clock.pending, 0, 'its deadline is gone')
    })
  }
})
