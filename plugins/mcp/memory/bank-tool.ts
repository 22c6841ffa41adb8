import { defineTool, svcError, type ToolCall, type ToolDefinition } from 'svc-gateway/plugin'
import type { z } from 'zod'
import {
  bankPath, committedSignal, engineValue, isVisibleRow, readDatasets, writtenDataset, type EngineQuestion, type MemoryIdentity
} from '../../services/memory/ref.js'
import { server, whoOf, type ToolDeps } from './note-tools.js'

type Input = Readonly<Record<string, unknown>>

export interface Asker {
  readonly bank: string
  readonly identity: MemoryIdentity
  readonly signal: AbortSignal
}

/** A tool that is one call of the engine about one bank. */
export interface BankTool<S extends z.ZodObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: S
  readonly kind: 'read' | 'write' | 'delete'
  readonly method: string
  /** Below the bank. */
  readonly path: (input: z.output<S>) => readonly string[]
  readonly query?: (input: z.output<S>) => Readonly<Record<string, string | number>>
  /** May ask the engine before. */
  readonly body?: (input: z.output<S>, asker: Asker) => unknown
  /** What is remembered: other agents read the trail of calls. */
  readonly unwritten?: readonly (keyof z.output<S> & string)[]
  /** For audit rows of what deletes. */
  readonly action?: string
  /** The memory that it is about: it must be one that the agent may see. */
  readonly memory?: (input: z.output<S>) => string
}

export function bankTool<S extends z.ZodObject> ({ activity, memory }: ToolDeps, tool: BankTool<S>): ToolDefinition {
  const { name, title, description, input, kind, method, action } = tool
  return defineTool<S>({
    server,
    name,
    title,
    description,
    input,
    ...tool.unwritten === undefined ? {} : { unwritten: tool.unwritten },
    ...kind === 'read' ? { readOnly: true } : { destructive: kind === 'delete' },
    handler: async (call: ToolCall<z.output<S>>) => {
      const bank = bankOf(whoOf(call), kind, (call.input as Input).dataset as string | undefined)
      await memory.enter(whoOf(call).agent, bank, call.signal)
      const of = tool.memory?.(call.input)
      if (of !== undefined) {
        const row = await ask({ method: 'GET', path: bankPath(bank, 'memories', of), signal: call.signal })
        if (!isVisibleRow(row, whoOf(call))) throw svcError('validation.invalid', `there is no memory '${of}' that you may see`, { param: 'memory_id' })
      }
      const path = bankPath(bank, ...tool.path(call.input))
      const asked = Object.entries(tool.query?.(call.input) ?? {}).map(([key, value]): [string, string] => [key, String(value)])
      const body = await tool.body?.(call.input, { bank, identity: whoOf(call), signal: call.signal })
      const question = { method, path, query: new URLSearchParams(asked).toString(), ...body === undefined ? {} : { body } }
      if (action === undefined) return await ask({ ...question, signal: call.signal })
      const target = [bank, ...tool.path(call.input).slice(1)].join('/')
      return await activity.audited({ category: 'memory', action, target, actor: call.actor, outcome: 'pending' },
        () => ask({ ...question, signal: committedSignal() }))
    }
  })

  async function ask (question: EngineQuestion): Promise<unknown> {
    const value = await engineValue(memory.engine(), question)
    return Array.isArray(value) ? { items: value as unknown[], count: value.length } : value
  }
}

/** In private mode an agent's own where it does not say; writes go there in any case. */
function bankOf (identity: MemoryIdentity, kind: BankTool<never>['kind'], asked: string | undefined): string {
  if (kind !== 'read' || asked === undefined) return writtenDataset(identity, asked).bank
  return readDatasets(identity, asked)[0]!.bank
}
