import type { Token } from 'node-llama-cpp'
import type { Engine } from './engine.js'
import type { Call } from './http-server.js'
import { chatSchema, detokenizeSchema, tokenizeSchema } from './requests.js'
import { vocabularySize, type TextEngine } from './text-engine.js'
import { parseBody } from './wire-error.js'

export function models (engine: Engine): object {
  const { model } = engine.host
  return {
    object: 'list',
    data: [{
      id: engine.args.alias,
      object: 'model',
      created: Math.floor(Date.now() / 1000),
      owned_by: 'llamacpp',
      meta: {
        n_vocab: vocabularySize(model.fileInfo.metadata.tokenizer),
        n_ctx: engine.contextSize,
        n_ctx_train: model.trainContextSize,
        n_embd: model.embeddingVectorSize,
        size: model.size
      }
    }]
  }
}

/** `n_past` is how many tokens a slot holds; it stands still while a reader does not read. */
export function slots (engine: Engine): object {
  if (engine.kind !== 'text') {
    return engine.pool.slots.map(slot => ({ id: slot.id, n_ctx: engine.contextSize, is_processing: engine.pool.isBusy(slot) }))
  }
  return engine.pool.slots.map(slot => ({
    id: slot.id, n_ctx: engine.contextSize, is_processing: engine.pool.isBusy(slot), n_past: slot.sequence.nextTokenIndex
  }))
}

/** The gauges and counters of llama-server that make sense here, in its spelling. */
export function metrics (engine: Engine, call: Call): null {
  const totals = engine.kind === 'text' ? engine.totals : { promptTokens: 0, promptMs: 0, completionTokens: 0, predictedMs: 0 }
  const perSecond = (amount: number, ms: number): number => ms === 0 ? 0 : amount * 1000 / ms
  const rows: Array<readonly [string, string, number]> = [
    ['prompt_tokens_total', 'counter', totals.promptTokens],
    ['prompt_seconds_total', 'counter', totals.promptMs / 1000],
    ['tokens_predicted_total', 'counter', totals.completionTokens],
    ['tokens_predicted_seconds_total', 'counter', totals.predictedMs / 1000],
    ['prompt_tokens_seconds', 'gauge', perSecond(totals.promptTokens, totals.promptMs)],
    ['predicted_tokens_seconds', 'gauge', perSecond(totals.completionTokens, totals.predictedMs)],
    ['requests_processing', 'gauge', engine.pool.busy],
    ['requests_deferred', 'gauge', engine.pool.waiting]
  ]
  call.response.setHeader('content-type', 'text/plain; version=0.0.4')
  call.response.end(rows.map(([name, type, value]) => `# TYPE llamacpp:${name} ${type}\nllamacpp:${name} ${value}\n`).join(''))
  return null
}

export function props (engine: Engine): object {
  return {
    total_slots: engine.pool.slots.length,
    model_path: engine.args.model,
    model_alias: engine.args.alias,
    chat_template: engine.kind === 'text' ? engine.renderer.source : '',
    default_generation_settings: { n_ctx: engine.contextSize },
    build_info: `svc-embedded (node-llama-cpp, llama.cpp ${engine.host.llama.llamaCppRelease.release})`
  }
}

export async function tokenize (engine: Engine, call: Call): Promise<object> {
  const body = parseBody(tokenizeSchema, await call.json())
  const { model } = engine.host
  const tokens = model.tokenize(body.content, true)
  const { bos } = model.tokens
  if (body.add_special === true && bos !== null && model.tokens.shouldPrependBosToken && tokens[0] !== bos) tokens.unshift(bos)
  return { tokens: body.with_pieces === true ? tokens.map(id => ({ id, piece: model.detokenize([id], true) })) : tokens }
}

export async function detokenize (engine: Engine, call: Call): Promise<object> {
  const body = parseBody(detokenizeSchema, await call.json())
  return { content: engine.host.model.detokenize(body.tokens as Token[], true) }
}

export async function applyTemplate (engine: TextEngine, call: Call): Promise<object> {
  const { prompt } = engine.renderer.render(parseBody(chatSchema, await call.json()))
  return { prompt }
}
