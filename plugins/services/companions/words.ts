/** A service, in the examples of help texts. */
export const EXAMPLE = 'openwebui'

/** What services keep below the configuration root and the state root, beside what the gateway itself has there. */
export const homeEntries = { configuration: ['openwebui.env'], state: ['comfyui', 'openwebui', 'hermes'] } as const
