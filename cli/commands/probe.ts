import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { Output } from '../terminal/output.js'

const text = z.string().default('')
const count = z.number().default(0)
const gpuSchema = z.looseObject({
  name: text,
  vendor: text,
  vram_mb: count,
  driver: text,
  pci_id: text,
  compute_capable: z.boolean().default(false),
  vulkan_capable: z.boolean().default(false)
})
const hardwareSchema = z.looseObject({
  hostname: text,
  distro: text,
  kernel: text,
  platform_label: text,
  cpu_name: text,
  cpu_cores: count,
  cpu_threads: count,
  ram_total_mb: count,
  ram_available_mb: count,
  is_uma: z.boolean().default(false),
  unified_memory_mb: count,
  cgroup_max_mb: z.number().nullish(),
  disk_free_mb: count,
  npu_name: z.string().nullish(),
  gpus: z.array(gpuSchema).default([])
})
type Hardware = z.output<typeof hardwareSchema>
type Gpu = z.output<typeof gpuSchema>

/** A driver in trouble may hold a probe for seconds. */
const PROBE_MS = 30_000

export function addProbeCommand (program: Command, cli: Cli): void {
  program.command('probe')
    .description('probe the hardware of the gateway\'s machine again')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc probe', 'svc probe --json'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { method: 'POST', path: '/api/hardware/probe', timeoutMs: PROBE_MS } as const
      if (options.json === true) return cli.out.json(await client.raw(call))
      printHardware(cli.out, await client.call(call, hardwareSchema))
    })
}

function printHardware (out: Output, found: Hardware): void {
  const { cpu_name: cpu, cpu_cores: cores, cpu_threads: threads, cgroup_max_mb: limit } = found
  out.pairs([
    ['host', [found.hostname, found.distro, found.kernel].filter(part => part !== '').join(', ')],
    ['platform', found.platform_label],
    ['cpu', `${cpu === '' ? 'unknown' : cpu}, ${cores} cores, ${threads} threads`],
    ['memory', `${gib(found.ram_total_mb)}, ${gib(found.ram_available_mb)} available`],
    ['shared with GPU', found.is_uma ? gib(found.unified_memory_mb) : null],
    ['limited to', limit == null ? null : gib(limit)],
    ['disk free', gib(found.disk_free_mb)],
    ['npu', found.npu_name ?? 'none'],
    ['gpu', found.gpus.length === 0 ? 'none' : null]
  ])
  if (found.gpus.length === 0) return
  out.line()
  out.table<Gpu>([
    { title: 'GPU', cell: gpu => gpu.name, flexible: true },
    { title: 'VRAM', cell: gpu => gpu.vram_mb === 0 ? '-' : gib(gpu.vram_mb) },
    { title: 'RUNS', cell: runs },
    { title: 'DRIVER', cell: gpu => gpu.driver, expendable: 1 },
    { title: 'ADDRESS', cell: gpu => gpu.pci_id, expendable: 2 }
  ], found.gpus)
}

function runs ({ vendor, compute_capable: computes, vulkan_capable: vulkan }: Gpu): string {
  const compute = computes ? vendor === 'nvidia' ? 'cuda' : 'rocm' : null
  const able = [compute, vulkan ? 'vulkan' : null].filter(name => name !== null)
  return able.length === 0 ? '-' : able.join(', ')
}

function gib (mib: number): string {
  return `${(mib / 1024).toFixed(1)} GiB`
}
