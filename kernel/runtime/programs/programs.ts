import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import { svcError, type Program, type Programs, type ProgramSpec } from '../../contract/index.js'
import { LABEL_INSTANCE, LABEL_TASK, type ContainerRuntime, type EngineSpec } from '../../contract/provider/engine-runtime.js'
import { findProgram } from './program-search.js'

export interface ProgramsDeps {
  readonly runtime: ContainerRuntime
  readonly instance: string
  /** PATH, read at each start. */
  readonly path: () => string
}

/**
 * Programs over the runtime of the slots. They carry no slot's label, so what a killed gateway left of them goes when the
 * next one reconciles.
 */
export class RuntimePrograms implements Programs {
  readonly #deps: ProgramsDeps

  constructor (deps: ProgramsDeps) {
    this.#deps = deps
  }

  async run (
    program: ProgramSpec, { signal, onMessage }: { readonly signal: AbortSignal, readonly onMessage?: (message: string) => void }
  ): Promise<Program> {
    const { runtime, instance } = this.#deps
    const spec = await this.#specOf(program)
    const { form } = spec
    if (form.kind === 'container' && !await runtime.imagePresent(form.image, null, signal)) {
      onMessage?.(`pulling ${form.image}`)
      await runtime.pull(form.image, null, ({ layer, totalLayers }) => onMessage?.(`pulling ${form.image}: ${layer} of ${totalLayers} layers`), signal)
    }
    let id: string | null = null
    let tell = (_code: number | null): void => {}
    const ended = new Promise<number | null>(resolve => { tell = resolve })
    const unwatch = runtime.onExit(instance, exit => { if (exit.id === id) tell(exit.exitCode) })
    const end = async (graceS: number): Promise<void> => {
      if (id === null) return
      await runtime.stop(id, graceS)
      await runtime.remove(id)
      unwatch()
      tell(null)
    }
    try {
      id = await runtime.create(spec, signal)
      const pipes = form.piped === true ? await runtime.startPiped?.(id, signal) ?? null : null
      if (pipes === null) await runtime.start(id, signal)
      // a stream that breaks is told by its end
      for (const stream of pipes === null ? [] : [pipes.stdin, pipes.stdout, pipes.stderr]) stream.on('error', () => {})
      const address = form.piped === true ? null : (await runtime.inspect(id))?.address ?? null
      let stopping: Promise<void> | null = null
      return { pipes, address, pid: pipes?.pid ?? null, ended, stop: graceS => stopping ??= end(graceS) }
    } catch (error) {
      await end(0)
      unwatch()
      throw error
    }
  }

  async #specOf ({ purpose, env, form }: ProgramSpec): Promise<EngineSpec> {
    const { instance } = this.#deps
    const common = {
      name: `svc-${instance.slice(0, 8)}-${purpose}-${randomBytes(3).toString('hex')}`,
      labels: { [LABEL_INSTANCE]: instance, [LABEL_TASK]: purpose },
      env,
      port: null
    }
    if (form.kind === 'process') {
      const command = await findProgram(form.command, this.#deps.path())
      if (command === null) throw noProgram(form.command)
      const { args, workingDir = null } = form
      return { ...common, form: { kind: 'process', command, args, workingDir, bindHost: '127.0.0.1', label: basename(command), piped: true } }
    }
    return {
      ...common,
      form: {
        kind: 'container', image: form.image, digest: null, entrypoint: null, command: form.args, mounts: [], devices: [], cdiDevices: [],
        groups: [], network: 'bridge', publishHost: form.port === null ? null : '127.0.0.1', ipc: 'private', shmSizeBytes: null,
        ulimits: {}, securityOpts: ['no-new-privileges'], workingDir: null,
        ...(form.port === null ? { piped: true as const } : { portInside: form.port })
      }
    }
  }
}

function noProgram (command: string): Error {
  const hint = command === 'npx' ? 'it comes with Node.js' : command === 'uvx' ? 'it comes with uv, https://docs.astral.sh/uv/' : 'install it, or give its full path'
  return svcError('runtime.unavailable', `${command} is not installed: ${hint}`, { details: { command }, heals: false })
}
