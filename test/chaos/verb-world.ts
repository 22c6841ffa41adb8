import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { core, defineAgent, definePlugin, defineTool, type ActivityLog, type ToolCatalogue } from '../../kernel/contract/index.js'
import { createTestGateway } from '../../kernel/testing/index.js'
import builtins from '../../plugins/index.js'

export interface VerbWorld {
  readonly url: string
  readonly home: string
  readonly folder: string
  readonly tools: ToolCatalogue
  readonly activity: ActivityLog
  readonly effects: Effects
  close (): Promise<void>
}

export interface VerbPlace {
  readonly home: string
  readonly folder: string
  /** Of Docker; null for child processes. */
  readonly host: string | null
  /** Of npm. */
  readonly registry: string
  readonly port: number
  readonly agentPort: number
}

/** What approved calls did, by what they were called with: each once, and what was denied never. */
export class Effects {
  readonly #runs = new Map<string, number>()
  readonly #approved = new Set<string>()

  ran (key: string): void { this.#runs.set(key, (this.#runs.get(key) ?? 0) + 1) }
  approved (key: string): void { this.#approved.add(key) }

  odd (): string[] {
    const keys = new Set([...this.#runs.keys(), ...this.#approved])
    return [...keys].flatMap(key => {
      const [runs, wanted] = [this.#runs.get(key) ?? 0, this.#approved.has(key) ? 1 : 0]
      return runs === wanted ? [] : [`call ${key} ran ${runs} times, and was ${wanted === 1 ? '' : 'not '}approved`]
    })
  }
}

/** Keeps whether units are active and enabled, is slow now and then, and sometimes fails. */
const systemctl = (folder: string): string => `#!/bin/sh
state=${folder}/units
known() { case "$1" in svc-agent@hermes.service | hindsight-api.service) return 0 ;; esac; return 1; }
case "$1" in
  show)
    shift 2
    for unit in "$@"; do
      echo "Id=$unit"
      if known "$unit"; then echo LoadState=loaded; else echo LoadState=not-found; fi
      if [ -e "$state/$unit.active" ]; then printf 'ActiveState=active\\nSubState=running\\n'; else printf 'ActiveState=inactive\\nSubState=dead\\n'; fi
      if [ -e "$state/$unit.enabled" ]; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi
      printf 'ActiveEnterTimestamp=\\n\\n'
    done ;;
  is-active)
    shift
    for unit in "$@"; do if [ "$unit" = avahi-daemon.service ] || [ -e "$state/$unit.active" ]; then echo active; else echo inactive; fi; done ;;
  start | restart) known "$2" || exit 5; case $$ in *7) echo "Job for $2 failed." >&2; exit 1 ;; *3) sleep 1 ;; esac; : > "$state/$2.active" ;;
  stop) rm -f "$state/$2.active" ;;
  enable) : > "$state/$2.enabled" ;;
  disable) rm -f "$state/$2.enabled" ;;
esac
`

/** A whole gateway with a service in a container, units, agents of a small registry and of the board, and a gated tool. */
export async function createVerbWorld ({ home, folder, host, registry, port, agentPort }: VerbPlace): Promise<VerbWorld> {
  for (const name of ['units', 'avahi', 'work', 'npm']) mkdirSync(join(folder, name))
  const tool = join(folder, 'systemctl')
  writeFileSync(tool, systemctl(folder))
  chmodSync(tool, 0o755)
  writeFileSync(join(folder, 'avahi/printer.service'), '')
  const effects = new Effects()
  let tools: ToolCatalogue | undefined
  let activity: ActivityLog | undefined
  const npm = { package: 'tiny-agent', version: '1.0.0', bytes: 10_000 }
  const base = { licence: { name: 'MIT', url: null }, program: 'tiny', requests: [], description: 'for a test', install: { npm } }
  const crew = definePlugin({
    name: 'svc-crew',
    kind: ['service', 'mcp'],
    apiVersion: 1,
    requires: { tools: core.tools, activity: core.activity },
    register (ctx) {
      ({ tools, activity } = ctx.services)
      ctx.addAgent(defineAgent({
        ...base, id: 'asks', name: 'Asks', probe: { args: ['--ask'], line: 'well?', expect: /"ok":true/ }, wiring: ({ model }) => ({ files: { model } })
      }))
      ctx.addAgent(defineAgent({
        ...base, id: 'serves', name: 'Serves', wiring: ({ gateway }) => ({ env: { GATEWAY: gateway } }),
        server: { port: agentPort, probe: '/', args: world => ['serve', String(world.port)] }
      }))
      ctx.addTool(defineTool({
        server: 'admin', name: 'soak_gated', description: 'counts', gated: true, primary: 'key', input: z.strictObject({ key: z.string() }),
        handler: async ({ input }) => {
          effects.ran(input.key)
          return { counted: input.key }
        }
      }))
    }
  })
  if (host !== null) process.env.DOCKER_HOST = host
  const gateway = await createTestGateway({
    home,
    builtins,
    plugins: [crew],
    files: {
      'etc/svc/svc.toml': `[slots]\nautostart = false\n[models]\nauto_scan_on_start = false\n[runtime]\ndriver = "${host === null ? 'process' : 'docker'}"\n`,
      'etc/svc/api.env': `SVC_AVAHI_SERVICES_DIR=${folder}/avahi\nSVC_HOSTNAME=box\n`,
      'etc/svc/slots/agent.toml': 'device = "cpu"\n'
    },
    pluginConfig: {
      'api-services': {
        systemctl: tool, services: { openwebui: { port } },
        // an installation from the Python registry is one that fails
        installer_env: { PIP_NO_INDEX: '1', NPM_CONFIG_REGISTRY: registry, NPM_CONFIG_CACHE: join(folder, 'npm'), NPM_CONFIG_USERCONFIG: '/dev/null' }
      },
      'updates': { releases_url: 'http://127.0.0.1:9/' },
      'board': { agents: { painter: { command: ['/bin/sh', '-c', 'cat > /dev/null; sleep 0.$(($$ % 10)); [ $(($$ % 5)) != 0 ]'], folder: join(folder, 'work') } } }
    }
  })
  const down = gateway.gateway.report().filter(({ state }) => state !== 'active')
  if (down.length > 0) throw new Error(`not all plugins are up: ${JSON.stringify(down)}`)
  return {
    url: gateway.baseUrl, home, folder, tools: tools!, activity: activity!, effects,
    close: async () => {
      await gateway.close()
      if (host !== null) delete process.env.DOCKER_HOST
    }
  }
}

/** Processes of this home, but for this one: agents, engines, installers. */
export async function processesOf (home: string): Promise<number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === process.pid) continue
    const [environment, command, status] = await Promise.all(['environ', 'cmdline', 'stat'].map(file => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')))
    if (!/\) Z /.test(status!) && (environment!.includes(home) || command!.includes(home))) found.push(pid)
  }
  return found
}
