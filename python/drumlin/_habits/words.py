"""Arguments, values and words of messages: code, and below it what people give, or what the message has."""

__all__ = ["WORDS"]

WORDS = """
[calls]
table.upsert({'id': 1, 'name': 'Ada'})
    upsert insert
table.update({'name': '?'}, where='id = ?', params=['Ada', 1])
    update
table.delete('id = ?', params=[1]), or table.delete_keys([1])
    delete
table.get_many([1, 2])
    get_many
table.get(2), table.get((1, 'x')) or table.get({'id': 1, 'name': 'x'})
    get
tree.put(path, value, when=..., keep_while={'a': drumlin.tree.exists()})
    put
groups.agg(n='count', mean=('price', 'mean'))
    agg
result.select(['a', 'b'])
    select
[arguments]
where=(drumlin.col('ts') >= first) & (drumlin.col('ts') <= last)
    date_range
rows=slice(10, 20)
    row_range skip offset
where='close > 1', or store.scan(path).group_by(...)
    query_builder
store.sql('select ... order by ...'), or .to_polars().sort(...)
    order_by
sort=['ts'] in write(), for tables that are read in that order
    sort_by
a table for each part, store.write(f'{path}/{part}', rows), read by store.scan(f'{path}/*', path_columns=['part'])
    partition_by partition_cols
schema='evolve'
    schema_mode merge_schema
write(), which replaces the columns too
    schema_overwrite
append(), write() or replace(), each a call of its own
    mode
store.set_retention(path, keep_last=1)
    prune_previous_versions prune_previous_version
table.upsert(rows)
    upsert
where='close > 1'
    predicate filter filters condition cond
as_of=3
    version version_as_of asof
as_of=datetime
    timestamp timestamp_as_of
as_of='name'
    snapshot
direction='backward'
    strategy
allow_exact=False
    allow_exact_matches allow_equal
on='ts' of times, by='sym' of columns that must be equal, in both data sets
    by_left by_right left_by right_by
limit=5
    n nrows n_rows num_rows head
columns=['a']
    cols column usecols select fields
sort=['ts'] for an order, key=['id'] for rows by key; a pandas index is kept by itself
    index
a pandas index is kept by itself
    index_col
key=['id']
    primary_key keys pk unique
nothing: values do not expire by time; store.set_retention(path, keep_for=...) is for versions of tables
    ttl
store.with_message('...')
    comment message commit_message
schema='evolve' in append()
    dynamic_schema
exist_ok=True
    if_not_exists
missing_ok=True in drop(), exist_ok=True in create()
    if_exists
missing_ok=True
    ignore_missing
write(), which replaces all rows
    overwrite
mode='read'
    read_only readonly
params=[...]
    parameters args bindings
for batch in store.read(path): ...
    batch_size chunk_size
store.read(path).to_arrow()
    as_arrow
store.read(path).to_pandas(), .to_polars() or .to_arrow()
    output_format engine
add_columns({name: (type, default)})
    default default_values
nothing: a call that returns has been done
    wait
storage_options={...}
    storage options credentials
nothing: drumlin.open makes a store if there is none
    create_if_missing create
table.merge(rows).when_not_matched(insert=True).execute(), which leaves rows with the same key
    insert.on_conflict insert.or_ignore insert.ignore insert.ignore_duplicates insert.on_duplicate insert.exist_ok
with store.transaction() as tx: ..., which reads the row, writes it, and raises Conflict if others changed it
    upsert.expected_version upsert.if_version upsert.version insert.expected_version update.expected_version
table.get(key) or {...}; it is None if there is no such row
    get.default
store.table(path).create(schema, exist_ok=True)
    table.create table.create_if_missing table.exist_ok
store.transact(lambda tx: ...), which runs it again
    transaction.retries transaction.retry transaction.max_retries transaction.attempts
table.create(schema, key=['id']), then table.upsert(rows)
    write.key write.primary_key write.keys write.unique
store.stage(path, data) for one process, store.ticket({path: schema}) for many; then store.commit(tokens)
    staged
df.set_index('ts'), whose index is a column; sort=['ts'] for the order
    index_column index_cols
store.scan(path).to_lazy()
    lazy
mode='write', for a store that must exist
    open.create open.must_exist
[data]
pandas.DataFrame(array, columns=['a', 'b']), or {'a': array}
    numpy.ndarray
pyarrow.parquet.read_table(file), or pyarrow.csv.read_csv(file)
    _io.BytesIO _io.BufferedReader bytes
{'n': values} for a column
    list:int list:float list:str
[dict(zip(names, row)) for row in rows]
    list:tuple list:list tuple
[columns]
columns=['a', 'b']
    Expr
store.sql('select close * 2 as c from ...')
    dict
[schema]
dict(pairs)
    list
df.schema
    polars.DataFrame polars.LazyFrame
pyarrow.Schema.from_pandas(df)
    pandas.DataFrame
{field.name: field.type for field in dataclasses.fields(Row)}
    type
{'id': 'int64', 'name': 'text'}
    str
[types]
'json'
    jsonb variant
'int64'; the numbers are yours
    serial bigserial smallserial autoincrement
'timestamp[ns]'
    datetime64[ns]
'timestamp[us]'
    datetime64[us] datetime64
'string'
    object
pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    category categorical enum
table.add_constraints(not_null=['id'])
    null
table.create(schema, key=['id'])
    key
[json]
value.isoformat()
    datetime date time Timestamp
list(value)
    tuple set frozenset dict_keys range
value.tolist()
    ndarray
value.item()
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool_ bool
str(value)
    Decimal UUID PosixPath Path Timedelta timedelta
store.write(path, data) for rows
    DataFrame Series Table LazyFrame
value.value of an Enum, dataclasses.asdict(value) of a dataclass
    other
[messages]
table.upsert({'id': 1, ...}) for a row with its key, table.update({'v': ...}, where='id = 1') for the others
    is_part_of_the_key
columns=None, which reads all
    column_'*'_does_not_exist
df.astype({column: type}) for the data, or table.widen({column: type}) for the table
    the_table_has_type
[as_of]
as_of=-1 for the newest version, -2 for the one before
    latest newest last head current previous before
as_of=datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
    ago yesterday now today
[errors]
store.write(path, data), which makes a table
    Table.append:NotFound Table.replace:NotFound Tables.append_many:NotFound
table.create({'id': int, ...}, key=['id']), which makes a table
    Table.upsert:NotFound Table.insert:NotFound Merge.execute:NotFound
table.upsert(rows), which replaces such rows
    Table.insert:AlreadyExists
store.transact(lambda tx: ...), which runs it again
    Transaction.commit:Conflict
"""
