export const FILE = 'capabilities.toml'
