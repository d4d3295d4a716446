// The part of flechette's types that the page uses.

export interface Column {
  length: number;
  at(index: number): any;
}

export interface Field {
  name: string | number;
  metadata: Map<string, string> | null;
}

export interface Table {
  numRows: number;
  schema: { fields: Field[] };
  getChildAt(index: number): Column;
}

export function tableFromIPC(data: ArrayBuffer | Uint8Array): Table;
