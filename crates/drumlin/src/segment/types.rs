//! Types within types.

use arrow::datatypes::{DataType, FieldRef};

/// The fields right below a nested type.
pub fn children(data_type: &DataType) -> &[FieldRef] {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => std::slice::from_ref(field),
        DataType::Struct(fields) => fields,
        _ => &[],
    }
}

/// Whether `is` holds for a type or one within it.
pub fn holds(data_type: &DataType, is: &impl Fn(&DataType) -> bool) -> bool {
    let within = match data_type {
        DataType::Dictionary(_, values) => holds(values, is),
        _ => children(data_type).iter().any(|field| holds(field.data_type(), is)),
    };
    within || is(data_type)
}
