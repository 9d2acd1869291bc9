// The facts and typed arrays that the page holds.

export function readFacts() {
  return JSON.parse(document.getElementById("facts").textContent);
}

export function decodeBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

export async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const TYPES = { Float64Array, Float32Array, Int32Array, Uint32Array, Uint16Array, Uint8Array };

// Return the arrays by name, given where each of them is: [type, first byte, length].
export function unpack(places, bytes) {
  const array = ([type, start, length]) => new TYPES[type](bytes.buffer, start, length);
  return Object.fromEntries(Object.entries(places).map(([name, place]) => [name, array(place)]));
}
