/** An input as `/object_info` lists it: a type name or a list of choices, and its bounds. */
export type InputInfo = readonly [string | readonly string[], Readonly<Record<string, unknown>>?]

export interface NodeInfo {
  readonly required: Readonly<Record<string, InputInfo>>
  readonly optional?: Readonly<Record<string, InputInfo>>
  readonly output: readonly string[]
  readonly outputNode: boolean
  readonly displayName: string
  readonly category: string
}

const samplers = [
  'euler', 'euler_cfg_pp', 'euler_ancestral', 'euler_ancestral_cfg_pp', 'heun', 'heunpp2', 'dpm_2', 'dpm_2_ancestral', 'lms', 'dpm_fast',
  'dpm_adaptive', 'dpmpp_2s_ancestral', 'dpmpp_sde', 'dpmpp_2m', 'dpmpp_2m_sde', 'dpmpp_3m_sde', 'ddpm', 'lcm', 'ddim', 'uni_pc', 'uni_pc_bh2'
]
const schedulers = ['simple', 'sgm_uniform', 'karras', 'exponential', 'ddim_uniform', 'beta', 'normal', 'linear_quadratic', 'kl_optimal']
const seed: InputInfo = ['INT', { default: 0, min: 0, max: 18446744073709552000, control_after_generate: true }]
const cfg: InputInfo = ['FLOAT', { default: 8.0, min: 0.0, max: 100.0, step: 0.1, round: 0.01 }]
const scalings = ['nearest-exact', 'bilinear', 'area', 'bicubic', 'lanczos']
const scaled: InputInfo = ['INT', { default: 512, min: 0, max: 16384, step: 1 }]
const place: InputInfo = ['INT', { default: 0, min: 0, max: 16384, step: 1 }]
const side: InputInfo = ['INT', { default: 512, min: 16, max: 16384, step: 8 }]

/** The nodes of the engine's core that image workflows use, with their inputs and outputs as the engine declares them. */
export function nodeTable (checkpoints: readonly string[], pictures: readonly string[] = []): Readonly<Record<string, NodeInfo>> {
  return {
    CheckpointLoaderSimple: {
      required: { ckpt_name: [checkpoints, { tooltip: 'The name of the checkpoint (model) to load.' }] },
      output: ['MODEL', 'CLIP', 'VAE'], outputNode: false, displayName: 'Load Checkpoint', category: 'loaders'
    },
    CLIPTextEncode: {
      required: { text: ['STRING', { multiline: true, dynamicPrompts: true }], clip: ['CLIP'] },
      output: ['CONDITIONING'], outputNode: false, displayName: 'CLIP Text Encode (Prompt)', category: 'conditioning'
    },
    EmptyLatentImage: {
      required: { width: side, height: side, batch_size: ['INT', { default: 1, min: 1, max: 4096 }] },
      output: ['LATENT'], outputNode: false, displayName: 'Empty Latent Image', category: 'latent'
    },
    KSampler: {
      required: {
        model: ['MODEL'],
        seed,
        steps: ['INT', { default: 20, min: 1, max: 10000 }],
        cfg,
        sampler_name: [samplers],
        scheduler: [schedulers],
        positive: ['CONDITIONING'],
        negative: ['CONDITIONING'],
        latent_image: ['LATENT'],
        denoise: ['FLOAT', { default: 1.0, min: 0.0, max: 1.0, step: 0.01 }]
      },
      output: ['LATENT'], outputNode: false, displayName: 'KSampler', category: 'sampling'
    },
    KSamplerSelect: {
      required: { sampler_name: [samplers] },
      output: ['SAMPLER'], outputNode: false, displayName: 'KSamplerSelect', category: 'sampling/custom_sampling/samplers'
    },
    SDTurboScheduler: {
      required: {
        model: ['MODEL'],
        steps: ['INT', { default: 1, min: 1, max: 10 }],
        denoise: ['FLOAT', { default: 1.0, min: 0, max: 1.0, step: 0.01 }]
      },
      output: ['SIGMAS'], outputNode: false, displayName: 'SDTurboScheduler', category: 'sampling/custom_sampling/schedulers'
    },
    SamplerCustom: {
      required: {
        model: ['MODEL'],
        add_noise: ['BOOLEAN', { default: true }],
        noise_seed: seed,
        cfg,
        positive: ['CONDITIONING'],
        negative: ['CONDITIONING'],
        sampler: ['SAMPLER'],
        sigmas: ['SIGMAS'],
        latent_image: ['LATENT']
      },
      output: ['LATENT', 'LATENT'], outputNode: false, displayName: 'SamplerCustom', category: 'sampling/custom_sampling'
    },
    LoadImage: {
      required: { image: [pictures, { image_upload: true }] },
      output: ['IMAGE', 'MASK'], outputNode: false, displayName: 'Load Image', category: 'image'
    },
    ImageScale: {
      required: { image: ['IMAGE'], upscale_method: [scalings], width: scaled, height: scaled, crop: [['disabled', 'center']] },
      output: ['IMAGE'], outputNode: false, displayName: 'Upscale Image', category: 'image/upscaling'
    },
    VAEEncode: {
      required: { pixels: ['IMAGE'], vae: ['VAE'] },
      output: ['LATENT'], outputNode: false, displayName: 'VAE Encode', category: 'latent'
    },
    RepeatLatentBatch: {
      required: { samples: ['LATENT'], amount: ['INT', { default: 1, min: 1, max: 64 }] },
      output: ['LATENT'], outputNode: false, displayName: 'Repeat Latent Batch', category: 'latent/batch'
    },
    RepeatImageBatch: {
      required: { image: ['IMAGE'], amount: ['INT', { default: 1, min: 1, max: 4096 }] },
      output: ['IMAGE'], outputNode: false, displayName: 'RepeatImageBatch', category: 'image/batch'
    },
    SetLatentNoiseMask: {
      required: { samples: ['LATENT'], mask: ['MASK'] },
      output: ['LATENT'], outputNode: false, displayName: 'Set Latent Noise Mask', category: 'latent/inpaint'
    },
    MaskToImage: {
      required: { mask: ['MASK'] },
      output: ['IMAGE'], outputNode: false, displayName: 'Convert Mask to Image', category: 'mask'
    },
    ImageToMask: {
      required: { image: ['IMAGE'], channel: [['red', 'green', 'blue', 'alpha']] },
      output: ['MASK'], outputNode: false, displayName: 'Convert Image to Mask', category: 'mask'
    },
    ImageCompositeMasked: {
      required: { destination: ['IMAGE'], source: ['IMAGE'], x: place, y: place, resize_source: ['BOOLEAN', { default: false }] },
      optional: { mask: ['MASK'] },
      output: ['IMAGE'], outputNode: false, displayName: 'ImageCompositeMasked', category: 'image'
    },
    VAEDecode: {
      required: { samples: ['LATENT'], vae: ['VAE'] },
      output: ['IMAGE'], outputNode: false, displayName: 'VAE Decode', category: 'latent'
    },
    SaveImage: {
      required: { images: ['IMAGE'], filename_prefix: ['STRING', { default: 'ComfyUI' }] },
      output: [], outputNode: true, displayName: 'Save Image', category: 'image'
    },
    PreviewImage: {
      required: { images: ['IMAGE'] },
      output: [], outputNode: true, displayName: 'Preview Image', category: 'image'
    }
  }
}

/** `/object_info` of one node. */
export function objectInfo (name: string, node: NodeInfo): object {
  const named = (inputs: Readonly<Record<string, InputInfo>>): string[] => Object.keys(inputs)
  return {
    input: { required: node.required, ...(node.optional === undefined ? {} : { optional: node.optional }) },
    input_order: { required: named(node.required), ...(node.optional === undefined ? {} : { optional: named(node.optional) }) },
    output: node.output,
    output_is_list: node.output.map(() => false),
    output_name: node.output,
    name,
    display_name: node.displayName,
    description: '',
    python_module: 'nodes',
    category: node.category,
    output_node: node.outputNode
  }
}
