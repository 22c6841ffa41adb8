import t from 'tap'
import { defineProvider, type EngineProvider } from '../../../kernel/contract/index.js'

const fields = {
  name: 'tiny', title: 'Tiny', family: 'tiny', devices: ['cpu'], slotTypes: ['tts'], cli: true, needsModel: false,
  surfaces: { speech: { path: '/v1/audio/speech', streaming: false, body: 'json' } },
  health: { path: '/health' }, exclusivity: 'standard', containerSpec: () => ({})
}
const { speech } = fields.surfaces

/** As a package in plain JavaScript has it. */
const define = (given: object): EngineProvider => defineProvider({ ...fields, ...given } as unknown as EngineProvider)
const refused = (given: object): string => {
  try {
    define(given)
    return 'nothing'
  } catch (error) {
    return (error as Error).message
  }
}

t.test('a provider that a compiler would have refused is refused by the field, with what it may be and what was meant', async t => {
  const table: ReadonlyArray<readonly [given: object, message: string]> = [
    [{ devices: ['toaster'] }, 'devices must be one of gpu-rocm, gpu-vulkan, gpu-cuda, cpu, npu, got \'toaster\''],
    [{ devices: ['gpu-cud'] }, 'devices must be one of gpu-rocm, gpu-vulkan, gpu-cuda, cpu, npu, got \'gpu-cud\'; did you mean gpu-cuda?'],
    [{ devices: undefined }, 'devices is missing'],
    [{ devices: [undefined] }, 'devices must be a list of texts'],
    [{ ports: [7] }, 'ports must be a list of texts'],
    [{ devices: [] }, 'devices must name at least one device'],
    [{ slotTypes: 'tts' }, 'slotTypes must be a list of texts'],
    [{ slotTypes: ['ttz'] }, 'slotTypes must be one of llm, embedding, reranking, transcription, tts, image, got \'ttz\'; did you mean tts?'],
    [{ exclusivity: 'bogus' }, 'exclusivity must be one of standard, exclusive, coexist-by-type, unmetered, got \'bogus\''],
    [{ exclusivity: undefined, exclusivitee: 'standard' }, 'exclusivity is missing; there is exclusivitee'],
    [{ argvSegmentz: () => ({}) }, 'argvSegmentz is not a known field; did you mean argvSegments?'],
    [{ processSpek: () => [] }, 'processSpek is not a known field; did you mean processSpec?'],
    [{ containerSpec: undefined }, 'containerSpec is missing'],
    [{ processSpec: [] }, 'processSpec must be a function'],
    [{ needsModel: 'no' }, 'needsModel must be true or false'],
    [{ image: 7 }, 'image must be text or a function'],
    [{ health: 7 }, 'health must be an object'],
    [{ health: {} }, 'health.path is missing'],
    [{ health: { path: 'health' } }, 'health.path must start with a slash'],
    [{ surfaces: {} }, 'surfaces must hold at least one surface'],
    [{ surfaces: { speach: speech } }, 'did you mean speech?'],
    [{ surfaces: { speech: null } }, 'surfaces.speech must be an object'],
    [{ surfaces: { speech: { ...speech, path: 7 } } }, 'surfaces.speech.path must be text'],
    [{ surfaces: { speech: { ...speech, body: 'xml' } } }, 'surfaces.speech.body must be one of json, multipart, got \'xml\''],
    [{ surfaces: { speech: { ...speech, streming: true } } }, 'surfaces.speech.streming is not a known field; did you mean streaming?'],
    [{ name: 7 }, 'name must be text'],
    [{ name: 'The Shed' }, 'name must be kebab-case']
  ]
  for (const [given, message] of table) t.ok(refused(given).endsWith(message), `${refused(given)} / ${message}`)
  t.equal(refused({ name: undefined }), 'a provider without a name: name is missing')
  for (const nothing of [undefined, null, [], 'tiny']) {
    t.throws(() => defineProvider(nothing as unknown as EngineProvider), { message: 'a provider without a name: must be an object' })
  }
})

t.test('a field that a later contract may have is let be', async t => {
  t.match(define({ colour: 'green' }), { name: 'tiny', colour: 'green' })
})
