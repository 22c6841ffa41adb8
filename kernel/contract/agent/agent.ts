import { AGENT_BRAND, hasBrand } from '../brand.js'
import type { PythonProgram, ServiceImage, ServiceWorld } from './companion.js'

/** Who an agent may be while it works. */
export interface AgentPersona {
  readonly id: string
  /** One line; may be empty. */
  readonly summary: string
  /** May be empty. */
  readonly systemPrompt: string
  /** Such as `concise`; null for no tone of its own. */
  readonly tone: string | null
}

/** What an agent is told of the gateway and of its own place when its wiring is made. */
export interface AgentWorld extends Pick<ServiceWorld, 'gateway' | 'host' | 'port' | 'dataDir' | 'secret'> {
  /** Its id, for `X-svc-Agent`. */
  readonly agent: string
  /** The model that it is to ask for: `svc/agent` unless the operator says otherwise. */
  readonly model: string
  /** Context window of that model in tokens; null if unknown. */
  readonly contextLength: number | null
  readonly personas: readonly AgentPersona[]
  /** Id of the persona that is active, which is one of them. */
  readonly persona: string
}

/** How one run of an agent is pointed at the gateway. */
export interface AgentWiring {
  readonly env?: Readonly<Record<string, string>>
  /** Text files that it reads, by their path below `dataDir`. They are written anew each time. */
  readonly files?: Readonly<Record<string, string>>
  /** Arguments before those of its user. */
  readonly args?: readonly string[]
  /** Arguments of runs of its program that come before, with the same environment: for what only the program itself can write. */
  readonly prepare?: ReadonlyArray<readonly string[]>
}

/** One value in a configuration file that belongs to the user; the rest of the file stays as it is. */
export interface AgentSetting {
  /** Path below the user's home, such as `.tool/config.toml`. */
  readonly file: string
  /** A variable of the user's environment that names the folder instead, and the file's name in that folder. */
  readonly folder?: { readonly variable: string, readonly file: string }
  readonly format: 'json' | 'toml' | 'yaml'
  /** Keys that lead to the value. TOML: to a table. YAML: one key of the top level. */
  readonly path: readonly [string, ...string[]]
  /** JSON. */
  readonly value: unknown
  /** What a file has to begin with: not written to one that is there. */
  readonly onlyIfNew?: boolean
}

/** A package of the npm registry, in a folder of its own. Scripts of packages do not run. */
export interface NpmProgram {
  readonly package: string
  /** The version that is installed, and no other: npm takes an older one silently where `engines` does not fit. */
  readonly version: string
  /** Disk that it takes, in bytes, as measured; null if unknown. */
  readonly bytes: number | null
}

/** How the gateway brings an agent; the first form that works here is taken. */
export interface AgentInstall {
  readonly npm?: NpmProgram
  readonly python?: Omit<PythonProgram, 'command'>
  /** Only for an agent with a `server`: nothing else of it could be run. */
  readonly container?: Pick<ServiceImage, 'image' | 'bytes' | 'data' | 'foreignUser'>
}

/** A part of the agent that runs as long as the gateway does. */
export interface AgentServer {
  /** TCP port on loopback. */
  readonly port: number
  readonly args: (world: AgentWorld) => readonly string[]
  /** It is up when a GET of this path answers with a status below 400. */
  readonly probe: string
  /**
   * Path and query of the WebSocket on which it speaks JSON-RPC: `session.create`, `prompt.submit`, `config.set`, and events.
   * Without it nothing of it can be told or asked while it runs.
   */
  readonly socket?: (world: AgentWorld) => string
}

/** One line to its standard input, and what one of the lines of its output says when it works. For agents without a server. */
export interface AgentProbe {
  readonly args: readonly string[]
  /** Without the line feed; null to end its input at once. */
  readonly line: string | null
  readonly expect: RegExp
}

/** One run of its program for one task, without a terminal: it asks nothing back, and its last line says what came of it. */
export interface AgentErrand {
  /**
   * Arguments after those of its wiring.
   * @param report absolute path of a file that it may write how it went to
   */
  readonly args: (prompt: string, report: string) => readonly string[]
  /** Where its exit code does not tell: why it failed, by its report (null: it wrote none); null when it did not. Pure. */
  readonly problem?: (report: string | null) => string | null
}

/** An agent: a program that people run on a model. Its wiring points it at this gateway. */
export interface AgentDescriptor {
  /** kebab-case, unique, at most 32 characters; also its name in `X-svc-Agent` and of its file in `agents/`. */
  readonly id: string
  readonly name: string
  /** One line. */
  readonly description: string
  readonly licence: { readonly name: string, readonly url: string | null }
  /** Name of its program, as on PATH. */
  readonly program: string
  /**
   * Its requests, where `X-svc-Agent` does not say whose they are: header names in lower case with what their values match.
   * All headers of one entry have to fit, and any entry will do.
   */
  readonly requests: ReadonlyArray<Readonly<Record<string, RegExp>>>
  /** Smallest context window that it works with, in tokens. */
  readonly minContext?: number
  readonly wiring: (world: AgentWorld) => AgentWiring
  /** What its own configuration has to say so that it uses the gateway without `svc agent run`. */
  readonly settings?: (world: AgentWorld) => readonly AgentSetting[]
  /** Lines for its user after that: a command to run, a model to choose. */
  readonly hints?: (world: AgentWorld) => readonly string[]
  /** How the gateway brings it. Without: it runs what is on PATH. */
  readonly install?: AgentInstall
  readonly server?: AgentServer
  readonly probe?: AgentProbe
  /** How it is given a task. Without: the task board gives it none. */
  readonly task?: AgentErrand
  /**
   * Folder of its skills below its `dataDir`, such as `skills`: each is a folder with a file `SKILL`, in Markdown. Without: it
   * has none.
   */
  readonly skills?: string
}

const ID = /^[a-z][a-z0-9-]{0,31}$/
const PACKAGE = /^(@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/i
const VERSION = /^\d[\w.+-]*$/
const SKILLS = /^(?!\.)[\w.-]+(?:\/(?!\.\.?(?:\/|$))[\w.-]+)*$/

/** Checks and brands a descriptor for `ctx.addAgent`. Throws a `TypeError` that names what is wrong. */
export function defineAgent (descriptor: AgentDescriptor): AgentDescriptor {
  const { id, program, requests, minContext = 1, install = {}, server, skills = 'skills' } = descriptor
  const packages = [install.npm, install.python].filter(each => each !== undefined)
  const rules: ReadonlyArray<readonly [holds: boolean, otherwise: string]> = [
    [ID.test(id), 'its id is not kebab-case of at most 32 characters'],
    [/^[\w.-]+$/.test(program), 'its program is not the name of a file'],
    [requests.every(entry => Object.keys(entry).length > 0 && Object.entries(entry).every(([name, value]) => /^[a-z0-9-]+$/.test(name) && value instanceof RegExp)),
      'an entry of its requests is not header names in lower case with patterns'],
    [Number.isInteger(minContext) && minContext > 0, 'its minContext is not a number of tokens'],
    [packages.every(each => PACKAGE.test(each.package) && VERSION.test(each.version)), 'a package of it has no valid name and exact version'],
    [install.container === undefined || server !== undefined, 'it is a container without a server'],
    [server === undefined || (Number.isInteger(server.port) && server.port > 0 && server.port < 65_536 && server.probe.startsWith('/')),
      'its server has no TCP port, or its probe is not a path'],
    [SKILLS.test(skills), 'the folder of its skills is not a path below its data']
  ]
  const wrong = rules.find(([holds]) => !holds)
  if (wrong !== undefined) throw new TypeError(`agent '${id}': ${wrong[1]}`)
  return Object.freeze({ ...descriptor, [AGENT_BRAND]: true }) as AgentDescriptor
}

export function isAgent (value: unknown): value is AgentDescriptor {
  return hasBrand(value, AGENT_BRAND)
}

/** The agents of plugins that are up, in the order in which plugins were loaded. */
export interface AgentCatalog {
  list (): readonly AgentDescriptor[]
  get (id: string): AgentDescriptor | undefined
  /** Called when agents have come or gone, or are described anew. Returns the unsubscriber. */
  onChange (listener: () => void): () => void
}
