import builtins from '../../plugins/index.js'
import { createGateway } from '../../kernel/gateway.js'
import type { Cli } from '../cli.js'
import { CliFailure } from '../failure.js'
import { createGatewayLog } from '../serve/gateway-log.js'

/**
 * Runs `work` with a gateway of this process, on an unpublished port. It loads no slot: what is set up here is for the
 * gateway that comes. Pulls that have not ended go on there.
 */
export async function withOwnGateway<T> (cli: Cli, home: string | undefined, work: (url: string) => Promise<T>): Promise<T> {
  const gateway = createGateway({
    builtins,
    env: cli.env,
    host: '127.0.0.1',
    port: 0,
    autostart: false,
    pluginConfig: { 'api-install': { load_after_pull: false } },
    log: createGatewayLog(cli.process, 'error'),
    ...(home === undefined ? {} : { home })
  })
  const leave = (): void => gateway.hurry()
  cli.signal.addEventListener('abort', leave, { once: true })
  try {
    const { baseUrl } = await gateway.start().catch((error: unknown) => { throw notPossible(error) })
    return await work(baseUrl)
  } finally {
    await gateway.stop()
    cli.signal.removeEventListener('abort', leave)
  }
}

function notPossible (error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') return error
  return new CliFailure(`no gateway runs, and none can be set up from here: ${message}`, {
    cause: error, hints: ['Run it as the user of the gateway, or name another home with --home or SVC_HOME.']
  })
}
