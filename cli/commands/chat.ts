import { addAbortSignal } from 'node:stream'
import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../cli.js'
import { converse } from '../chat/conversation.js'
import { ChatSession } from '../chat/session.js'
import { usageFailure } from '../failure.js'
import { examples } from '../terminal/help.js'
import { numberOf } from '../option-value.js'

interface ChatOptions {
  readonly slot: string
  readonly model?: string
  readonly system?: string
  readonly maxTokens?: number
  readonly temperature?: number
  readonly json?: true
  readonly stream: boolean
  readonly v?: true
}

export function addChatCommand (program: Command, cli: Cli): void {
  program.command('chat [prompt]')
    .description('ask a model and stream its answer; without a prompt, start a conversation')
    .option('-s, --slot <slot>', 'slot to ask', 'agent')
    .option('-m, --model <model>', 'ask this model instead: any model name that /v1 accepts')
    .option('--system <text>', 'system prompt')
    .addOption(new Option('--max-tokens <count>', 'longest answer').argParser(numberOf(z.int().min(1))))
    .addOption(new Option('--temperature <number>', 'sampling temperature').argParser(numberOf(z.number().min(0))))
    .option('--json', 'print what the API sends: one chunk a line, or the answer with --no-stream')
    .option('--no-stream', 'wait for the whole answer')
    .option('-v', 'same as --verbose: print the speed to standard error')
    .addHelpText('after', '\nThe prompt may come from standard input. Ctrl-C cancels the answer, on the engine too.')
    .addHelpText('after', examples('svc chat "Why is the sky blue?"', 'svc chat --slot coder < question.txt'))
    .action(async (prompt: string | undefined, options: ChatOptions, command: Command) => {
      const { slot, model, json, v, ...settings } = options
      const session = new ChatSession(cli.client(command), cli.out, {
        ...settings, model: model ?? slot, json: json === true, verbose: v === true || cli.verbose
      })
      if (prompt === undefined && cli.process.stdin.isTTY === true) return await converse(cli, session)
      const question = prompt ?? await readInput(cli)
      if (question.trim() === '') throw usageFailure('the prompt is empty', ['Give it as an argument or on standard input.'])
      await session.ask(question, cli.signal)
    })
}

async function readInput ({ process, signal }: Cli): Promise<string> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of addAbortSignal(signal, process.stdin)) chunks.push(Buffer.from(chunk as Buffer))
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
  return Buffer.concat(chunks).toString('utf8')
}
