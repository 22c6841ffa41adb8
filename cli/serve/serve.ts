import builtins from '../../plugins/index.js'
import { isSvcError, messageOf, type ConfigService } from '../../kernel/contract/index.js'
import { createGateway, type Gateway, type StartedGateway } from '../../kernel/gateway.js'
import type { Cli } from '../cli.js'
import { RestartWanted } from '../failure.js'
import { version } from '../version.js'
import { watchConfig, type ConfigWatch } from './config-watch.js'
import { createGatewayLog, type LevelledLogger } from './gateway-log.js'
import { notify } from './notify.js'
import { printReady } from './ready-block.js'
import { installationOf } from './restart.js'
import { StopRequests } from './stop-requests.js'

export interface ServeOptions {
  readonly host?: string
  readonly port?: number
  readonly home?: string
  readonly demo?: true
  readonly reload?: true
  readonly logLevel?: string
  readonly readyJson?: true
  readonly stopEngines?: true
  readonly standby?: true
  readonly stopOnStdinEnd?: true
  readonly checkAnswers?: true
}

/** Runs a gateway until it is told to stop. Resolves when it has stopped cleanly. */
export async function serve (cli: Cli, options: ServeOptions): Promise<void> {
  const log = createGatewayLog(cli.process, options.logLevel ?? 'info')
  const stops = new StopRequests(cli)
  const { installation, wanted } = installationOf(cli)
  if (options.stopOnStdinEnd === true) stops.onInputEnd(cli.process.stdin)
  const gateway = createGateway({
    builtins,
    log,
    guardProcess: true,
    installation,
    ...(options.home === undefined ? {} : { home: options.home }),
    ...(options.host === undefined ? {} : { host: options.host }),
    ...(options.port === undefined ? {} : { port: options.port }),
    ...(options.demo === true ? { pluginConfig: { demo: { provision: true, command: cli.command() } } } : {}),
    ...(options.standby === true ? { standby: true } : {}),
    ...(options.stopEngines === true ? { stopEngines: true } : {}),
    ...(options.checkAnswers === true ? { checkAnswers: true } : {}),
    // the level of svc.toml holds where neither the command line nor the environment says one
    ...(options.logLevel === undefined ? { setLogLevel: (level: string) => { log.level = level } } : {})
  })
  let isUp = false
  void stops.first.then(() => isUp ? undefined : gateway.stop())
  const started = await gateway.start().catch((error: unknown) => {
    if (isSvcError(error) && error.code === 'gateway.stopping') return null
    throw error
  })
  isUp = true
  if (started === null) return options.readyJson === true ? undefined : cli.out.line('Stopped.')
  const { config } = gateway.kernel()
  const watching = options.reload === true ? await watchFiles(config, log) : null
  announce(cli, gateway, started, options)
  const tell = async (...states: string[]): Promise<void> => {
    const problem = await notify(cli.env, ...states)
    if (problem !== null) log.warn(`the service manager could not be notified of ${states[0]!}: ${problem}`)
  }
  const ready = tell('READY=1', `STATUS=serving at ${started.baseUrl}`)
  const isRestart = await Promise.race([stops.first.then(() => false), wanted.then(() => true)])
  void ready.then(() => tell('STOPPING=1'))
  if (options.readyJson !== true) cli.out.line('Stopping once running answers end. Press Ctrl-C again to cut them short.')
  void stops.second.then(() => gateway.hurry())
  watching?.close()
  await gateway.stop()
  if (isRestart) throw new RestartWanted()
  if (options.readyJson !== true) cli.out.line('Stopped.')
}

function announce (cli: Cli, gateway: Gateway, { baseUrl, info }: StartedGateway, options: ServeOptions): void {
  if (options.readyJson === true) return cli.out.lines([JSON.stringify({ url: baseUrl, pid: cli.process.pid })])
  const { snapshot, paths } = gateway.kernel().config
  printReady(cli.out, { version, baseUrl, runtime: info.runtime, plugins: gateway.report(), config: snapshot, paths })
}

function watchFiles (config: ConfigService, log: LevelledLogger): Promise<ConfigWatch> {
  return watchConfig(config.paths, async () => {
    const before = config.snapshot.revision
    const { revision } = await config.reload()
    if (revision !== before) log.info({ revision }, 'the configuration was reloaded because files changed')
  }, error => { log.warn({ error: messageOf(error) }, 'files changed, and the configuration could not be reloaded: it is as before') })
}
