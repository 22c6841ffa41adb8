import { resolve } from 'node:path'
import { z } from 'zod'
import type { Cli } from '../cli.js'
import type { ApiClient } from '../client/client.js'
import { modelListSchema } from '../record/model-record.js'
import { sizeText } from '../terminal/size-text.js'
import { slotListSchema } from '../record/slot-record.js'
import { Prompt } from './prompt.js'

export interface Known {
  /** Of the command line; asked for without it. */
  readonly storage: string | undefined
  readonly extensions: boolean
  readonly hasNpu: boolean
}

interface SelectedSlot { readonly capability: string, readonly model_id: string }

/** The body of `POST /api/install/apply-selections`. */
export interface Selections {
  readonly storage_dir: string
  readonly slots: readonly SelectedSlot[]
  readonly extensions: Readonly<Record<string, boolean>>
  readonly npu_opt_in: boolean
}

const curatedSchema = z.looseObject({
  models: z.array(z.looseObject({
    id: z.string(),
    description: z.string().default(''),
    size_gb: z.number(),
    tags: z.array(z.string()).default([]),
    installed: z.boolean().default(false),
    fits: z.boolean().default(true),
    recommended: z.boolean().default(false)
  }))
})
type Curated = z.output<typeof curatedSchema>['models'][number]

const stateSchema = z.looseObject({
  offers: z.array(z.looseObject({
    id: z.string(),
    kind: z.string(),
    name: z.string(),
    description: z.string(),
    bytes: z.number().nullable(),
    licence: z.looseObject({ name: z.string(), note: z.string().nullable() }),
    installed: z.boolean()
  })).default([])
})
type Offer = z.output<typeof stateSchema>['offers'][number]

const storeSchema = z.looseObject({ effective: z.string() })

const NOTHING = 'none'

/** Asks what a first run needs to know, one thing after the other. Null when the review is declined. */
export async function askSelections (cli: Cli, client: ApiClient, known: Known): Promise<Selections | null> {
  const prompt = new Prompt(cli)
  try {
    const storage = known.storage ?? await askStorage(cli, client, prompt)
    const { offers } = known.extensions ? await client.call({ path: '/api/install/state' }, stateSchema) : { offers: [] }
    const extensions = await askExtensions(prompt, offers.filter(({ kind }) => kind === 'app'))
    const { models } = await client.call({ path: '/api/install/curated-models' }, curatedSchema)
    const main = await askMain(cli, client, prompt, models)
    const agent = await askAgent(cli, prompt, offers.filter(({ kind }) => kind === 'agent'))
    const coder = agent === null ? null : coderModel(models, main)
    const npu = known.hasNpu && await prompt.confirm('Create a slot on the NPU too?', true)
    const selections = {
      storage_dir: storage,
      slots: [
        ...(main === null ? [] : [{ capability: 'chat.primary', model_id: main }]),
        ...(coder === null ? [] : [{ capability: 'chat.coder', model_id: coder }])
      ],
      extensions: { ...extensions, ...(agent === null ? {} : { [agent]: true }) },
      npu_opt_in: npu
    }
    review(cli, selections, models)
    return await prompt.confirm('Set this up?', true) ? selections : null
  } finally {
    prompt.close()
  }
}

async function askStorage (cli: Cli, client: ApiClient, prompt: Prompt): Promise<string> {
  const { effective } = await client.call({ path: '/api/settings/models/store' }, storeSchema)
  const answer = await prompt.text('Where should models be stored?', effective)
  return resolve(cli.process.cwd(), answer)
}

/** Only what can be brought here, and is not here yet. */
async function askExtensions (prompt: Prompt, offers: readonly Offer[]): Promise<Record<string, boolean>> {
  const wanted: Record<string, boolean> = {}
  for (const offer of offers.filter(({ installed }) => !installed)) {
    const { id, name, description } = offer
    if (await prompt.confirm(`Set up ${name}: ${description} (${factsOf(offer)})?`, false)) wanted[id] = true
  }
  return wanted
}

/** What to know before: its size and its licence. Pure. */
function factsOf ({ bytes, licence: { name, note } }: Offer): string {
  return [bytes === null ? null : sizeText(bytes), name, note].filter(fact => fact !== null).join(', ')
}

/** Null for no slot to chat with, or the one that is there. */
async function askMain (cli: Cli, client: ApiClient, prompt: Prompt, models: readonly Curated[]): Promise<string | null> {
  const slots = await client.call({ path: '/api/slots' }, slotListSchema)
  const present = slots.find(({ name }) => ['agent', 'chat', 'primary'].includes(name))
  if (present?.model_default != null) {
    cli.out.note(`Slot ${present.name} already exists, with ${present.model_default}.`)
    return null
  }
  const fitting = models.filter(({ fits }) => fits).toSorted((a, b) => a.size_gb - b.size_gb)
  const choices = [...fitting.map(model => ({ name: model.id, about: aboutModel(model) })), { name: NOTHING, about: 'no model for now' }]
  const preset = Math.max(0, fitting.findIndex(({ recommended }) => recommended))
  cli.out.note('Chat models that fit the memory of this machine:')
  const { models: registered } = await client.call({ path: '/api/models' }, modelListSchema)
  const here = registered.filter(({ owned_by: owner, installed, type }) => owner === 'local' && installed && type === 'chat')
  const known = new Set([...models, ...here].map(({ id }) => id))
  const picked = await prompt.choose('Which one? A number, or the id of any curated or registered model', choices, preset, known)
  return picked === NOTHING ? null : picked
}

function aboutModel ({ description, size_gb: size, installed, recommended }: Curated): string {
  return [sizeText(size * 1e9), ...(installed ? ['here already'] : []), ...(recommended ? ['recommended'] : []), description].join(', ')
}

/** One is at a time, so none is asked for where there is one. */
async function askAgent (cli: Cli, prompt: Prompt, offers: readonly Offer[]): Promise<string | null> {
  if (offers.length === 0 || offers.some(({ installed }) => installed)) return null
  cli.out.note('An agent needs a slot for code:')
  const choices = offers.map(offer => ({ name: offer.id, about: `${offer.description} (${factsOf(offer)})` }))
  const agent = await prompt.choose('Which one?', [{ name: NOTHING, about: '' }, ...choices], 0)
  return agent === NOTHING ? null : agent
}

/** The largest one for code that fits, else the one to chat with. */
function coderModel (models: readonly Curated[], main: string | null): string {
  const fitting = models.filter(({ fits, tags }) => fits && tags.includes('coder')).toSorted((a, b) => b.size_gb - a.size_gb)
  return fitting[0]?.id ?? main ?? ''
}

function review ({ out }: Cli, selections: Selections, models: readonly Curated[]): void {
  const { storage_dir: storage, slots, extensions, npu_opt_in: npu } = selections
  const wanted = new Set(slots.map(({ model_id: id }) => id))
  const size = models.filter(({ id, installed }) => wanted.has(id) && !installed).reduce((sum, model) => sum + model.size_gb, 0)
  out.note('')
  out.note(`  models in    ${storage}`)
  for (const { capability, model_id: model } of slots) {
    out.note(`  ${(capability === 'chat.coder' ? 'for code' : 'to chat').padEnd(12)} ${model === '' ? 'no model for now' : model}`)
  }
  if (npu) out.note('  npu          no model for now')
  for (const id of Object.keys(extensions)) out.note(`  extension    ${id}`)
  if (size > 0) out.note(`  to download  ${sizeText(size * 1e9)}`)
  out.note('')
}
