export { gatewayMisfit, jsonProblem } from '../../kernel/host/gateway-fit.js'
