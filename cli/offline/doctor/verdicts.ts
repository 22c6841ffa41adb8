import { PROGRAM } from '../../../plugins/providers/llm-server/words.js'
import { runtimesText } from '../../record/runtimes.js'
import { satisfiesLeast } from './node-version.js'
import type { DoctorFacts, PortFacts } from './facts.js'

/** `warn` is something to know; only `fail` makes the doctor end with 1. */
export interface Check {
  readonly id: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly message: string
  /** What to do about it. */
  readonly next: string | null
}

type Verdict = Omit<Check, 'id'>

const ok = (message: string): Verdict => ({ status: 'ok', message, next: null })
const warn = (message: string, next: string | null = null): Verdict => ({ status: 'warn', message, next })
const fail = (message: string, next: string): Verdict => ({ status: 'fail', message, next })

/** Every check, whatever the others say. Pure. */
export function verdicts (facts: DoctorFacts): readonly Check[] {
  return Object.entries(checks).map(([id, judge]) => ({ id, ...judge(facts) }))
}

type Problem = DoctorFacts['files'][number]['problems'][number]

/** The engine that a slot names came with a plugin that is not there. */
const isProviderGone = ({ code }: Problem): boolean => code === 'slot.provider_gone'
const isOfFile = (problem: Problem): boolean => problem.severity === 'error' && !isProviderGone(problem)

const checks: Readonly<Record<string, (facts: DoctorFacts) => Verdict>> = {
  system ({ platform }) {
    return platform === 'linux' ? ok('Linux') : warn(`${platform} is not Linux: GPUs are not found, and engines get no devices`)
  },
  arch ({ arch }) {
    if (arch === 'x64') return ok('x86_64')
    if (arch === 'arm64') return warn('arm64: some images of engines are made for x86_64 only')
    return fail(`there are no engines for ${arch}`, 'Use a machine with an x86_64 or arm64 processor.')
  },
  node ({ nodeVersion, nodeLeast }) {
    return satisfiesLeast(nodeVersion, nodeLeast) ? ok(`Node ${nodeVersion}`)
      : fail(`Node ${nodeVersion} is too old`, `Install Node ${nodeLeast} or later.`)
  },
  systemd ({ hasSystemctl }) {
    return hasSystemctl ? ok('systemctl is there') : warn('no systemctl: the gateway cannot run as a service or manage others')
  },
  folders ({ folders }) {
    const bad = folders.filter(({ problem }) => problem !== null)
    if (bad.length === 0) return ok(folders.map(({ path }) => path).join(', '))
    return fail(bad.map(({ path, what, problem }) => `${path} (${what}) ${problem!}`).join('; '),
      'Run it as the user of the gateway, or check ownership with `svc doctor perms`.')
  },
  engine ({ driver, engines, hasProcessEngine: isEquipped }) {
    const bare = `neither ${PROGRAM} nor the embedded engine is installed`
    const install = 'Run `svc engine install embedded`'
    if (driver === 'process') {
      const message = '[runtime] driver is process: engines are child processes'
      return isEquipped ? ok(message) : warn(`${message}, and ${bare}`, `${install}, or install ${PROGRAM}.`)
    }
    const found = engines.find(({ problem }) => problem === null)
    const passed = engines.filter(({ problem }) => problem !== null).map(({ source, problem }) => `${source} ${problem!}`).join('; ')
    if (found !== undefined) return ok(`${found.name} (${found.source})`)
    const next = 'Start Docker or Podman (systemctl start docker, or podman.socket), or set DOCKER_HOST.'
    if (driver === 'auto' && !isEquipped) return warn(`no container engine answers, and ${bare}: ${passed}`, `${install}. Or: ${next}`)
    return driver === 'auto' ? warn(`no container engine answers, so engines are child processes: ${passed}`, next)
      : fail(`[runtime] driver is ${driver}, and none answers: ${passed}`, next)
  },
  runtimes ({ runtimes }) {
    if (runtimes === null) return ok('no gateway is running to ask which are open')
    const message = runtimesText(runtimes)!
    return runtimes.every(({ problem }) => problem == null) ? ok(message)
      : warn(message, 'Slots that set it as their `runtime` do not start; fix the problem and load one, or give them another runtime.')
  },
  cluster ({ cluster }) {
    if (cluster === null) return ok('no cluster is configured')
    const { place, namespace, version, problems, doubts, gpus } = cluster
    const next = '`svc cluster manifest` prints the namespace, the account and the rights for `kubectl apply -f -`; the rest is in [runtime.kubernetes] of svc.toml.'
    if (problems.length > 0) return fail(`${place}: ${problems.join('; ')}`, next)
    if (version === null) return warn(`${place}; ${doubts.join('; ')}`, 'Start the gateway once more with the former [runtime.kubernetes], or remove the pods.')
    const given = Object.entries(gpus ?? {}).map(([name, count]) => `${count} ${name}`).join(', ')
    const said = `Kubernetes ${version} at ${place}, namespace '${namespace}'; GPUs: ${gpus === null ? 'the account may not see nodes' : given === '' ? 'none' : given}`
    return doubts.length > 0 ? warn(`${said}; ${doubts.join('; ')}`, next) : ok(said)
  },
  gpu ({ hardware, nodes, user }) {
    if (hardware === null) return warn('the hardware could not be probed')
    const closed = nodes.filter(({ path, canOpen }) => !canOpen && !path.startsWith('/dev/accel/') && !path.includes('/card'))
    if (closed.length > 0) {
      const groups = [...new Set(closed.map(({ group }) => group))]
      return warn(`${closed.map(({ path }) => path).join(', ')} cannot be opened`, `Add ${user} to ${groups.join(', ')}: usermod -aG ${groups.join(',')} ${user}`)
    }
    if (hardware.gpus.length === 0) return ok('no GPU: engines run on the CPU')
    const names = hardware.gpus.map(({ name, vendor, vram_mb: vram }) => `${name || vendor}${vram > 0 ? ` (${Math.round(vram / 1024)} GiB)` : ''}`).join(', ')
    const isHidden = hardware.gpus.some(({ vendor }) => vendor === 'amd') && nodes.every(({ path }) => path !== '/dev/kfd')
    return isHidden ? warn(`${names}; ROCm has no /dev/kfd`, 'Load the amdgpu driver with its compute part, or use Vulkan.') : ok(names)
  },
  npu ({ hardware, nodes, user }) {
    if (hardware === null || !hardware.npu.present) return ok('no NPU')
    const node = nodes.find(({ path }) => path === hardware.npu.accel_path)
    if (node === undefined) return warn(`${hardware.npu.name} has no device node`, 'Load the amdxdna driver.')
    return node.canOpen ? ok(`${hardware.npu.name} at ${node.path}`)
      : warn(`${node.path} cannot be opened`, `Add ${user} to ${node.group}: usermod -aG ${node.group} ${user}`)
  },
  disk ({ disk: { path, freeBytes, leastGb } }) {
    if (freeBytes === null) return warn(`the free space of ${path} cannot be determined`)
    const free = `${(freeBytes / 1e9).toFixed(1)} GB free at ${path}`
    return freeBytes >= leastGb * 1e9 ? ok(free)
      : fail(`${free}, less than ${leastGb} GB`, 'Free some space, move the models ([models] store), or set SVC_DISK_MIN_GB.')
  },
  ports ({ ports, neighbour }) {
    const taken = ports.filter(({ holder, isOwn }) => holder !== null && !isOwn)
    if (taken.length === 0) return ok(`${ports.map(({ port }) => port).join(', ') || 'none requested'}: free, or in use by svc`)
    const message = taken.map(portText).join('; ')
    const next = 'Stop it, or change the port: `svc config edit`, `svc slot edit <slot> --port`.'
    const [first] = taken
    if (taken.length === 1 && first!.use === 'the gateway' && neighbour?.port === first!.port) {
      const { home } = neighbour
      return warn(`${message}: a gateway with another home (${home ?? 'that of this system'}) answers there`,
        `Check that one with \`svc doctor${home === null ? '' : ` --home ${home}`}\`, or give this one another port: \`svc config edit\`.`)
    }
    // containers go on without a gateway, and the next one takes them over
    return taken.every(({ isSlot }) => isSlot) ? warn(message, 'If it is an engine of an earlier run, the gateway takes it over.') : fail(message, next)
  },
  config ({ files }) {
    const broken = files.filter(file => file.problems.length === 0 ? file.status === 'broken' : file.problems.some(isOfFile))
    const present = files.filter(({ status, problems }) => status === 'ok' || problems.some(isProviderGone)).length
    if (broken.length === 0) return ok(present === 0 ? 'no files, so all settings have their defaults' : `valid: ${present} file${present === 1 ? '' : 's'}`)
    return fail(`not valid: ${broken.map(({ file }) => file).join(', ')}`, '`svc config validate` says what is wrong.')
  },
  plugins ({ plugins, files }) {
    const orphans = files.flatMap(({ file, problems }) => problems.filter(isProviderGone).map(({ message }) => `${file}: ${message}`))
    if (plugins.length > 0) {
      return warn([...plugins.map(({ name, problem }) => `${name}: ${problem}`), ...orphans].join('; '),
        'Fix the package and `svc plugin add` it again, or `svc plugin remove` it; `svc plugin list` shows all plugins.')
    }
    return orphans.length === 0 ? ok('all in force')
      : warn(orphans.join('; '), 'Add the plugin that brings it, or pick another with `svc slot edit <slot> --provider <provider>`.')
  },
  gateway ({ gateway: { url, status, problem } }) {
    if (problem !== null) return warn(problem, 'Start one with `svc serve`, or name another address with --url.')
    return status === 'ok' ? ok(`answers at ${url ?? ''}`) : warn(`answers at ${url ?? ''}: ${status ?? 'unknown'}`, '`svc status` says why.')
  },
  images ({ images }) {
    if (images === null) return ok('not checked: there is no container engine')
    const { present, absent } = images
    return ok(`${present.length} of ${present.length + absent.length} are present${absent.length === 0 ? '' : '; the others are pulled when a slot needs them'}`)
  }
}

function portText ({ port, use, holder }: PortFacts): string {
  const who = holder!.pid === null ? 'another process' : `${holder!.command} (process ${holder!.pid})`
  return `${port}${use === null ? '' : ` (${use})`} is held by ${who}`
}
