import type { Cli } from '../cli.js'
import { ChatSession } from '../chat/session.js'
import { CliFailure, Interrupted } from '../failure.js'
import { GatewayChild } from './gateway-child.js'

/** The first start may have a model to write and an image to look for. */
const READY_MS = 120_000
const PROMPT = 'Hello, who are you?'

/** One answer, streamed by a gateway of its own. Leaves no process behind, however it ends. */
export async function runDemo (cli: Cli, home: string): Promise<void> {
  const { out, signal } = cli
  out.note(`Starting a gateway in ${home} ...`)
  const child = new GatewayChild(['--demo', '--no-install', '--port', '0', '--stop-engines', '--home', home], cli.process.cwd())
  let failure: unknown = null
  try {
    const url = await child.ready(READY_MS, signal)
    out.note(`It is listening at ${url}. Asking slot agent: ${PROMPT}`)
    const session = new ChatSession(cli.clientAt(url), out, { model: 'agent', stream: true, json: false, verbose: true })
    await session.ask(PROMPT, signal)
  } catch (error) {
    failure = error
  }
  if (child.running) out.note('Stopping the gateway and its engine ...')
  // of a gateway that ended by itself the first failure is told, not this one
  await child.stop().catch((error: unknown) => { failure ??= error })
  if (failure === null) return out.note('Done. Keep one running with: svc serve --demo')
  throw failure instanceof Interrupted ? failure : withLog(failure, child.log)
}

function withLog (failure: unknown, log: readonly string[]): CliFailure {
  const { message } = failure as Error
  const hints = failure instanceof CliFailure ? failure.hints : []
  return new CliFailure(message, {
    cause: failure, hints: [...hints, ...(log.length === 0 ? [] : ['Last lines of the gateway:', ...log.map(line => `  ${line}`)])]
  })
}
